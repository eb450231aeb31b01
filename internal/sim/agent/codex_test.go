package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestCodexSaysWholeMessages(t *testing.T) {
	r := newPlace(t).codex(t, `[[think "hm"]][[text "Hello " ]][[text "world"]][[usage in=10 out=5 cached=3]]`)
	var kinds []string
	for _, e := range r.events() {
		kinds = append(kinds, e["type"].(string))
	}
	if got := strings.Join(kinds, " "); got != "thread.started turn.started item.completed item.completed turn.completed" {
		t.Errorf("events %s", got)
	}
	u := r.last("turn.completed")["usage"].(event)
	if r.message() != "Hello world" || u["input_tokens"] != 10.0 || u["cached_input_tokens"] != 3.0 {
		t.Errorf("message %q, usage %v", r.message(), u)
	}
}

func TestCodexRunsTools(t *testing.T) {
	p := newPlace(t)
	r := p.codex(t, `[[tool "echo out; exit 3"]][[write path=a.txt text=written]]`, "-s", "workspace-write")
	var got []string
	for _, e := range r.events() {
		if item, ok := e["item"].(event); ok {
			got = append(got, e["type"].(string)+" "+item["type"].(string))
			if item["type"] == "command_execution" && e["type"] == "item.completed" &&
				(item["exit_code"] != 3.0 || item["aggregated_output"] != "out\n" || item["status"] != "failed") {
				t.Errorf("%v", item)
			}
		}
	}
	want := "item.started command_execution, item.completed command_execution, item.started file_change, item.completed file_change, item.completed agent_message"
	if strings.Join(got, ", ") != want {
		t.Errorf("items %v", got)
	}
	if b, err := os.ReadFile(filepath.Join(p.work, "a.txt")); err != nil || string(b) != "written" {
		t.Errorf("file %q, %v", b, err)
	}
}

func TestCodexSandboxBlocksWithoutAWord(t *testing.T) {
	p := newPlace(t)
	r := p.codex(t, `[[ask "touch made"]][[write path=made text=x]][[text after]]`)
	if exists(p, "made") || r.message() != "after" || len(r.events()) != 4 {
		t.Errorf("made %v, events %v", exists(p, "made"), r.events())
	}
	r = p.codex(t, `[[ask "touch made"]][[text after]]`, "--yolo")
	if !exists(p, "made") || r.message() != "after" {
		t.Errorf("made %v, events %v", exists(p, "made"), r.events())
	}
}

func TestCodexThreads(t *testing.T) {
	p := newPlace(t)
	first := p.codex(t, `I am Ann [[text ok]]`)
	id := first.last("thread.started")["thread_id"].(string)
	second := p.codex(t, `[[history]]`, "resume", id)
	if second.message() != "1. I am Ann" || second.last("thread.started")["thread_id"] != id {
		t.Errorf("resume: %v", second.events())
	}
	if u := second.last("turn.completed")["usage"].(event); u["input_tokens"] != 2400.0 {
		t.Errorf("usage is not the thread's total: %v", u)
	}
	r := p.codex(t, `x`, "resume", "11111111-2222-3333-4444-555555555555")
	if r.status.ExitStatus() != 1 || r.out != "" ||
		r.stderr != "Error: thread/resume: thread/resume failed: no rollout found for thread id 11111111-2222-3333-4444-555555555555 (code -32600)\n" {
		t.Errorf("unknown id: %+v", r)
	}
	if r := p.codex(t, `[[history]]`, "resume", "nosuchname"); !strings.Contains(r.message(), "first message") {
		t.Errorf("an unknown name starts a new thread: %v", r.events())
	}
}

func TestCodexRefusesCommandLines(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"a flag that is gone": {[]string{"exec", "--full-auto"}, 2,
			"error: unexpected argument '--full-auto' found"},
		"sandbox behind resume": {[]string{"exec", "resume", "--json", "-s", "read-only", "x"}, 2,
			"error: unexpected argument '-s' found"},
		"two words": {[]string{"exec", "a", "b"}, 2, "error: unexpected argument 'b' found"},
		"a sandbox that is none": {[]string{"exec", "--sandbox", "bogus"}, 2,
			"error: invalid value 'bogus' for '--sandbox <SANDBOX_MODE>'"},
		"json twice": {[]string{"exec", "--json", "--json"}, 2,
			"error: unexpected argument '--json' found"},
		"outside a repository": {[]string{"exec", "--json", "hello"}, 1,
			"Not inside a trusted directory and --skip-git-repo-check was not specified."},
		"untrusted is gone": {[]string{"exec", "-c", "approval_policy=untrusted", "x"}, 1, "no longer supported"},
		"a picture eats the rest": {[]string{"exec", "--skip-git-repo-check", "-i", "a.png", "the prompt"}, 1,
			"No prompt provided via stdin."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			// nothing lies above, where a .git could be: a real Codex leaves one in its writable directories, such as /tmp
			p.work = "/"
			r := p.run(t, "", append([]string{"codex"}, tt.args...)...)
			if r.status.ExitStatus() != tt.code || !strings.Contains(r.stderr, tt.says) || r.out != "" {
				t.Errorf("%+v", r)
			}
		})
	}
	if r := newPlace(t).run(t, "", "codex", "--version"); r.out != "codex-cli 0.169.0\n" {
		t.Errorf("version %q", r.out)
	}
	if r := newPlace(t).run(t, "", "codex", "login", "status"); r.status.ExitStatus() != 0 {
		t.Errorf("login status: %+v", r)
	}
}

func TestCodexErrorsOfTheAPI(t *testing.T) {
	tests := map[string]struct {
		prompt string
		errors int
		says   string
	}{
		"401 reconnects": {`[[error 401 delay=1ms message="bad key"]]`, 6,
			"unexpected status 401 Unauthorized: bad key"},
		"429 does not":       {`[[error 429]]`, 1, "exceeded retry limit, last status: 429 Too Many Requests"},
		"400 does not":       {`[[error 400 message=odd]]`, 1, `"message":"odd"`},
		"an error wears off": {`[[error 500 times=2 delay=1ms]][[text fine]]`, 2, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newPlace(t).codex(t, tt.prompt)
			errs := 0
			for _, e := range r.events() {
				if e["type"] == "error" {
					errs++
				}
			}
			if errs != tt.errors {
				t.Errorf("%d errors", errs)
			}
			if tt.says == "" {
				if r.message() != "fine" {
					t.Errorf("%v", r.events())
				}
				return
			}
			if got := r.last("turn.failed")["error"].(event)["message"].(string); !strings.Contains(got, tt.says) ||
				r.status.ExitStatus() != 1 {
				t.Errorf("%q, status %v", got, r.status)
			}
		})
	}
}

func TestCodexWaitsForAnOpenPipe(t *testing.T) {
	l := newPlace(t).start(t, "codex", "exec", "--json", "--skip-git-repo-check", "the prompt [[text ok]]")
	eventually(t, "it says that it waits", func() bool {
		return strings.Contains(stderrOf(l), "Reading additional input") || stopped(l.cmd.Process.Pid)
	})
	if stopped(l.cmd.Process.Pid) {
		t.Fatal("it did not wait")
	}
	l.in.Close()
	if r := l.wait(); r.message() != "ok" {
		t.Errorf("%+v", r)
	}
}

func TestCodexSignals(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			l := newPlace(t).start(t, "codex", "exec", "--json", "--skip-git-repo-check",
				`[[tool "exec `+ownSleep()+`"]]`)
			l.in.Close()
			eventually(t, "the tool runs", func() bool { return processes(t, ownSleep()) == 1 })
			l.signal(s)
			r := l.wait()
			if s == syscall.SIGINT && r.status.ExitStatus() != 1 || s == syscall.SIGTERM &&
				(!r.status.Signaled() || r.status.Signal() != syscall.SIGTERM) {
				t.Errorf("status %v", r.status)
			}
			if strings.Contains(r.out, "turn.failed") || strings.Contains(r.out, "turn.completed") ||
				processes(t, ownSleep()) != 0 {
				t.Errorf("out %q", r.out)
			}
		})
	}
}

func TestCodexListsModels(t *testing.T) {
	l := newPlace(t).start(t, "codex", "app-server")
	l.send(`no json`)
	l.send(`{"id":0,"method":"model/list","params":{}}`)
	l.send(`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"test","version":"1"}}}`)
	l.send(`{"method":"initialized"}`)
	l.send(`{"id":2,"method":"model/list","params":{"limit":3}}`)
	l.send(`{"id":3,"method":"model/list","params":{"limit":3,"cursor":"3"}}`)
	l.send(`{"id":4,"method":"nonsense"}`)
	l.in.Close()
	r := l.wait()
	replies := map[float64]event{}
	for _, e := range r.events() {
		if id, ok := e["id"].(float64); ok {
			replies[id] = e
		}
	}
	if replies[0]["error"] == nil || replies[4]["error"] == nil {
		t.Errorf("not refused: %v, %v", replies[0], replies[4])
	}
	page, rest := replies[2]["result"].(event), replies[3]["result"].(event)
	if len(page["data"].([]any)) != 3 || page["nextCursor"] != "3" || len(rest["data"].([]any)) != 1 ||
		rest["nextCursor"] != nil {
		t.Errorf("pages %v, %v", page, rest)
	}
	if r.status.ExitStatus() != 0 {
		t.Errorf("status %v", r.status)
	}
}
