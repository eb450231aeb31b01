package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// dialog talks with the app server line by line.
type dialog struct {
	t *testing.T
	l *live
}

func newDialog(t *testing.T, p place) *dialog {
	t.Helper()
	d := &dialog{t: t, l: p.start(t, "codex", "app-server")}
	t.Cleanup(func() {
		if err := d.l.in.Close(); err != nil {
			t.Error(err)
		}
		d.l.wait()
	})
	d.l.send(`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"test","version":"1"}}}`)
	d.await(func(e event) bool { return e["id"] == 1.0 })
	return d
}

// await reads until found accepts a line.
func (d *dialog) await(found func(event) bool) event {
	d.t.Helper()
	for {
		line, err := d.l.out.ReadBytes('\n')
		if err != nil {
			d.t.Fatalf("the line never came: %v", err)
		}
		var e event
		if json.Unmarshal(line, &e) == nil && found(e) {
			return e
		}
	}
}

func (d *dialog) method(name string) event {
	d.t.Helper()
	return d.await(func(e event) bool { return e["method"] == name })["params"].(event)
}

// thread starts a thread and returns its id.
func (d *dialog) thread(policy, sandbox string) string {
	d.t.Helper()
	d.l.send(fmt.Sprintf(`{"id":"t","method":"thread/start","params":{"approvalPolicy":%q,"sandbox":%q,`+
		`"config":{"shell_environment_policy.set.CHAT":"42"}}}`, policy, sandbox))
	reply := d.await(func(e event) bool { return e["id"] == "t" })
	return reply["result"].(event)["thread"].(event)["id"].(string)
}

func (d *dialog) start(thread, prompt string) {
	raw, err := json.Marshal(prompt)
	if err != nil {
		d.t.Fatal(err)
	}
	d.l.send(
		fmt.Sprintf(`{"id":"s","method":"turn/start","params":{"threadId":%q,"input":[{"type":"text","text":%s}]}}`,
			thread, raw))
}

func (d *dialog) status() string {
	d.t.Helper()
	return d.method("turn/completed")["turn"].(event)["status"].(string)
}

func TestCodexAppServerStreamsAndRuns(t *testing.T) {
	d := newDialog(t, newPlace(t))
	thread := d.thread("never", "danger-full-access")
	d.start(thread, `[[text "Hello world" chunk=5]][[tool "echo chat $CHAT; exit 3"]][[text end]]`)
	if first := d.method("item/agentMessage/delta"); first["delta"] != "Hello" || first["threadId"] != thread {
		t.Errorf("first delta %v", first)
	}
	done := d.await(func(e event) bool {
		params, _ := e["params"].(event)
		item, _ := params["item"].(event)
		return e["method"] == "item/completed" && item["type"] == "commandExecution"
	})["params"].(event)["item"].(event)
	if done["exitCode"] != 3.0 || done["aggregatedOutput"] != "chat 42\n" || done["status"] != "failed" {
		t.Errorf("%v", done)
	}
	if total := d.method("thread/tokenUsage/updated")["tokenUsage"].(event)["total"].(event); total["outputTokens"] == 0.0 {
		t.Errorf("%v", total)
	}
	if s := d.status(); s != "completed" {
		t.Error(s)
	}
}

func TestCodexAppServerAsks(t *testing.T) {
	for decision, want := range map[string]bool{"accept": true, "decline": false, "what": false} {
		p := newPlace(t)
		d := newDialog(t, p)
		d.start(d.thread("untrusted", "workspace-write"), `[[tool "touch made"]][[text after]]`)
		ask := d.await(func(e event) bool { return e["method"] == "item/commandExecution/requestApproval" })
		d.l.send(fmt.Sprintf(`{"id":%v,"result":{"decision":%q}}`, ask["id"], decision))
		d.l.send(fmt.Sprintf(`{"id":%v,"result":{"decision":"accept"}}`, ask["id"])) // too late
		d.method("serverRequest/resolved")
		if s := d.status(); s != "completed" || exists(p, "made") != want {
			t.Errorf("%s: %s, made %v", decision, s, exists(p, "made"))
		}
	}
}

func TestCodexAppServerLeavesACommandThatIsInterrupted(t *testing.T) {
	d := newDialog(t, newPlace(t))
	thread := d.thread("never", "danger-full-access")
	d.start(thread, `[[tool "exec `+ownSleep()+`"]]`)
	turn := d.method("turn/started")["turn"].(event)["id"].(string)
	eventually(t, "the tool runs", func() bool { return processes(t, ownSleep()) == 1 })
	d.l.send(fmt.Sprintf(`{"id":"i","method":"turn/interrupt","params":{"threadId":%q,"turnId":%q}}`, thread, turn))
	if s := d.status(); s != "interrupted" || processes(t, ownSleep()) != 1 {
		t.Errorf("%s, %d run on", s, processes(t, ownSleep()))
	}
	d.l.send(fmt.Sprintf(`{"id":"c","method":"thread/backgroundTerminals/clean","params":{"threadId":%q}}`, thread))
	eventually(t, "the tool is gone", func() bool { return processes(t, ownSleep()) == 0 })
	d.l.send(fmt.Sprintf(`{"id":"x","method":"turn/interrupt","params":{"threadId":%q,"turnId":%q}}`, thread, turn))
	if reply := d.await(func(e event) bool { return e["id"] == "x" }); reply["error"] == nil {
		t.Errorf("nothing was interrupted: %v", reply)
	}
}

func TestCodexAppServerIsSteered(t *testing.T) {
	p := newPlace(t)
	d := newDialog(t, p)
	thread := d.thread("never", "danger-full-access")
	d.start(thread, `[[tool "until [ -e go ]; do sleep 0.01; done"]][[text one]]`)
	turn := d.method("turn/started")["turn"].(event)["id"].(string)
	d.l.send(fmt.Sprintf(`{"id":"m","method":"turn/steer","params":{"threadId":%q,"expectedTurnId":%q,"input":[{"type":"text","text":"[[tool \"touch steered\"]]"}]}}`, thread, turn))
	d.await(func(e event) bool { return e["id"] == "m" && e["error"] == nil })
	if err := os.WriteFile(filepath.Join(p.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := d.status(); s != "completed" || !exists(p, "steered") {
		t.Errorf("%s, steered %v", s, exists(p, "steered"))
	}
}
