package codex

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// asked returns the approval for a request. changes are those of the item i1, if any.
func asked(method string, params json.RawMessage, changes string) cli.ApprovalAsked {
	req := cli.Request{Dir: "/srv/proj"}
	turn := &liveTurn{
		Turn:   &shared.Turn[news]{Req: req},
		parser: newLiveParser(turn.NewEmitter(Agent, time.Now, func(cli.Event) {}), req),
	}
	if changes != "" {
		var n notice
		if err := json.Unmarshal([]byte(`{"item":{"id":"i1","type":"fileChange","changes":`+changes+`}}`), &n); err != nil {
			panic(err)
		}
		turn.parser.itemNotice("item/started", &n)
	}
	return turn.approvalOf(newInquiry(rpc.Message{ID: json.RawMessage(`1`), Method: method, Params: params}))
}

// An approval contains every value of a request.
func TestLawAnApprovalTellsEveryField(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		method := rapid.SampledFrom([]string{askCommand, askFiles, askPermissions, askServer}).Draw(rt, "method")
		input := clitest.Inputs("command", "Command", "cwd", "reason", "grantRoot", "additionalPermissions", "networkApprovalContext", "permissions",
			"message", "url", "serverName", "_meta", "tool_name", "tool_params", "kind", "threadId").Draw(rt, "input")
		ev := asked(method, input, "")
		if left := clitest.Unshown(input, clitest.Shown(ev), nil); len(left) > 0 {
			rt.Fatalf("%s %s does not tell %q: %+v", method, input, left, ev)
		}
		if hidden := clitest.Hidden("codex", ev, "/srv/proj"); len(hidden) > 0 {
			rt.Fatalf("%s %s hides %q", method, input, hidden)
		}
	})
}

// An approval contains every value of a patch, or the patch cannot be allowed. No rule allows values that ductor does
// not know.
func TestLawAnApprovalTellsEveryFieldOfAPatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all []string
		strange := false
		for range rapid.IntRange(0, 3).Draw(rt, "files") {
			if rapid.Bool().Draw(rt, "usual") {
				all = append(all, rapid.SampledFrom([]string{
					`{"path":"added.txt","kind":{"type":"add"},"diff":"first line\nsecond line\n"}`,
					`{"path":"/srv/proj/gone.txt","kind":{"type":"delete"},"diff":"gone\n"}`,
					`{"path":"moved.txt","kind":{"type":"update","move_path":"elsewhere.txt"},"diff":"@@ -1 +1 @@\n-old\n+new\n"}`,
					`{"path":"same.txt","kind":{"type":"update","move_path":null},"diff":"@@ -1 +1 @@\n-old\n+new\n"}`,
					`{"path":"word.txt","kind":"update","diff":"@@ -1 +1 @@\n-old\n+new\n"}`,
				}).Draw(rt, "file"))
				continue
			}
			strange = true
			all = append(all, string(clitest.Inputs("path", "Path", "kind", "type", "diff", "move_path", "mode", "target").Draw(rt, "change")))
		}
		changes := rapid.SampledFrom([]string{"[" + strings.Join(all, ",") + "]", strings.Join(append(all, "7")[:1], "")}).Draw(rt, "changes")
		ev := asked(askFiles, json.RawMessage(`{"itemId":"i1"}`), changes)
		left := clitest.Unshown(json.RawMessage(`{"changes":`+changes+`}`), clitest.Shown(ev)+" add delete update move_path:null", nil)
		if ev.Allowable() && len(left) > 0 {
			rt.Fatalf("%s does not tell %q: %+v", changes, left, ev)
		}
		if strings.HasPrefix(changes, "[") && !strange && len(all) > 0 && (!ev.Allowable() || ev.Widens()) {
			rt.Fatalf("%s cannot be allowed as usual: %+v", changes, ev)
		}
	})
	for _, changes := range []string{
		`[{"path":"a","kind":{"type":"symlink"},"diff":"x"}]`, `[{"path":"a","kind":{"type":"update","mode":"0777"},"diff":"x"}]`,
		`[{"path":"a","kind":{"type":"add"},"diff":"x","target":"/etc/passwd"}]`, `[{"path":"a","path":"/etc/passwd","kind":{"type":"add"},"diff":"x"}]`,
	} {
		if ev := asked(askFiles, json.RawMessage(`{"itemId":"i1"}`), changes); ev.Allowable() && !ev.Widens() {
			t.Errorf("a rule may let %s through: %+v", changes, ev)
		}
	}
}

// Codex does not report whether the target of a move exists.
func TestAMoveMayReplaceAFile(t *testing.T) {
	changes := `[{"path":"a.txt","kind":{"type":"update","move_path":"b.txt"},"diff":""}]`
	ev := asked(askFiles, json.RawMessage(`{"itemId":"i1"}`), changes)
	want := []cli.FileChanged{{Path: "a.txt", Kind: cli.FileUpdated}, {Path: "b.txt", Kind: cli.FileReplaced}}
	if !slices.Equal(ev.Changes, want) {
		t.Errorf("the request changes %+v", ev.Changes)
	}
}

// Rules decide by the effect of a request.
func TestTheEffectOfARequest(t *testing.T) {
	usual := `"threadId":"t","itemId":"i1","kind":"command","environmentId":"local"`
	for _, c := range []struct {
		method, params, want string
	}{
		{askCommand, `{"command":"/bin/bash -lc 'git status'","cwd":"/srv/proj",` + usual + `}`,
			"|git status||routine|exact"},
		{askCommand, `{"command":"ls","reason":"more rights",` + usual + `}`, "|ls||explained|exact"},
		{askCommand, `{"command":"ls","cwd":"/etc",` + usual + `}`, "/etc|ls||routine|exact"},
		{askCommand, `{"command":"ls","environmentId":"remote"}`, "|||routine|exact"},
		{askCommand, `{"command":"ls","networkApprovalContext":{"host":"a"}}`, "|||routine|exact"},
		{askFiles, `{"itemId":"i1","grantRoot":null}`, "||||tool"},
		{askFiles, `{"itemId":"i1","grantRoot":"/"}`, "||||exact"},
		{askServer, `{"serverName":"s","message":"m"}`, "||||tool"},
	} {
		ev := asked(c.method, json.RawMessage(c.params), "")
		if got := clitest.EffectLine(ev.Effect, "/srv/proj"); got != c.want {
			t.Errorf("%s %s: %s", c.method, c.params, got)
		}
	}
}

// The arguments of a tool of an MCP server count, wherever Codex puts them. The description of the tool does not.
func TestAttackTheArgumentsOfAServersTool(t *testing.T) {
	for params, want := range map[string]bool{
		`{"query":"x"}`: false, `{"path":"x"}`: true, `{"x":[{"cmd":"ls"}]}`: true, `{"uri":"/etc/x"}`: true,
	} {
		ev := asked(askServer, json.RawMessage(`{"serverName":"s","message":"Use it?","_meta":{"tool_name":"put",
			"codex_approval_kind":"mcp_tool_call","tool_description":"like /bin/put","tool_params":`+params+`}}`), "")
		got := ev.Effect.Reach != cli.ReachTool || ev.LeadsElsewhere("/srv/proj")
		if got != want || ev.Tool != "s.put" {
			t.Errorf("%s: %s leads elsewhere: %v", params, ev.Tool, got)
		}
	}
}

func TestWhatARequestLeavesOut(t *testing.T) {
	for _, c := range []struct{ method, params, missing string }{
		{askCommand, `{"command":"ls"}`, ""},
		{askCommand, `{"cwd":"/"}`, "the command"},
		{askCommand, `{"command":" "}`, "the command"},
		{askCommand, `{"networkApprovalContext":{"host":"a","protocol":"https"}}`, ""},
		{askFiles, `{"itemId":"i1"}`, ""},
		{askFiles, `{"itemId":"i2","grantRoot":"/"}`, "the changes"},
		{askPermissions, `{"permissions":{"network":null,"fileSystem":null}}`, "the permissions"},
		{askPermissions, `{"permissions":{"network":{"enabled":true}}}`, ""},
	} {
		ev := asked(c.method, json.RawMessage(c.params), `[{"path":"a"}]`)
		if ev.Missing != c.missing || ev.Allowable() != (c.missing == "") {
			t.Errorf("%s %s: %q is missing, allowable: %v", c.method, c.params, ev.Missing, ev.Allowable())
		}
	}
	if asked(askServer, json.RawMessage(`{"serverName":"s","mode":"form","turnId":null}`), "").Allowable() {
		t.Error("a server may be allowed what it does not say")
	}
}

// A command is shown without its shell only if nothing else is omitted.
func TestACommandWithoutItsShell(t *testing.T) {
	for raw, want := range map[string]string{
		`/bin/bash -lc 'touch a'`:         `touch a`,
		`/bin/bash -lc ls`:                `ls`,
		`/bin/bash -lc 'it'\''s'`:         `it's`,
		`/bin/bash -lc "echo \"\$HOME\""`: `echo "$HOME"`,
		`/bin/bash -lc "echo $HOME"`:      `/bin/bash -lc "echo $HOME"`,
		`/bin/bash -lc 'a' 'b'`:           `/bin/bash -lc 'a' 'b'`,
		`/bin/bash -lc ls; rm -rf ~`:      `/bin/bash -lc ls; rm -rf ~`,
		`rm -rf ~`:                        `rm -rf ~`,
	} {
		params, err := json.Marshal(map[string]string{"command": raw})
		if err != nil {
			t.Fatal(err)
		}
		ev := asked(askCommand, params, "")
		if shown := cmp.Or(ev.Detail, ev.Title); shown != want || !strings.Contains(clitest.Shown(ev), raw) {
			t.Errorf("%s is shown as %s", raw, clitest.Shown(ev))
		}
	}
}

// A patch is only an edit if no field contains more.
func TestWhatIsAnEdit(t *testing.T) {
	for params, want := range map[string]bool{
		`{"itemId":"i1","threadId":"2","turnId":"3","startedAtMs":4,"reason":null,"grantRoot":null}`: true,
		`{"itemId":"i1","reason":"it needs to write there"}`:                                         false,
		`{"itemId":"i1","grantRoot":"/"}`:                                                            false,
		`{"itemId":"i1","grantRoot":""}`:                                                             false,
		`{"itemId":"i1","additionalPermissions":{"x":1}}`:                                            false,
		`{"itemId":"i1","then":"run it"}`:                                                            false,
		// an unknown patch
		`{"itemId":"i2"}`: false,
	} {
		if got := asked(askFiles, json.RawMessage(params), `[{"path":"a","kind":{"type":"update"},"diff":"@@ -1 +1 @@\n-a\n+b\n"}]`).OnlyEdits(); got != want {
			t.Errorf("%s is only an edit: %v", params, got)
		}
	}
	if asked(askCommand, json.RawMessage(`{"itemId":"i1","command":"ls"}`), `[{"path":"a"}]`).OnlyEdits() {
		t.Error("a command is an edit")
	}
}
