package codex

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// asked is the approval that a request becomes.
func asked(method string, params json.RawMessage, changes ...cli.FileChanged) cli.ApprovalAsked {
	req := cli.Request{Dir: "/srv/proj"}
	turn := &liveTurn{req: req, parser: newLiveParser(turn.NewEmitter(Agent, time.Now, func(cli.Event) {}), req)}
	if len(changes) > 0 {
		turn.parser.changes["i1"] = changes
	}
	return turn.approvalOf(newInquiry(rpc.Message{ID: json.RawMessage(`1`), Method: method, Params: params}))
}

// Every value of a request is in its approval.
func TestLawAnApprovalTellsEveryField(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		method := rapid.SampledFrom([]string{askCommand, askFiles, askPermissions, askServer}).Draw(rt, "method")
		input := clitest.Inputs("command", "Command", "cwd", "reason", "grantRoot", "additionalPermissions", "networkApprovalContext", "permissions",
			"message", "url", "serverName", "_meta", "tool_name", "tool_params", "kind", "threadId").Draw(rt, "input")
		ev := asked(method, input)
		if left := clitest.Unshown(input, clitest.Shown(ev), nil); len(left) > 0 {
			rt.Fatalf("%s %s does not tell %q: %+v", method, input, left, ev)
		}
	})
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
		ev := asked(c.method, json.RawMessage(c.params), cli.FileChanged{Path: "a"})
		if ev.Missing != c.missing || ev.Allowable() != (c.missing == "") {
			t.Errorf("%s %s: %q is missing, allowable: %v", c.method, c.params, ev.Missing, ev.Allowable())
		}
	}
	if asked(askServer, json.RawMessage(`{"serverName":"s","mode":"form","turnId":null}`)).Allowable() {
		t.Error("a server may be allowed what it does not say")
	}
}

// A command is shown without its shell only where that is all that is left out.
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
		ev := asked(askCommand, params)
		if shown := cmp.Or(ev.Detail, ev.Title); shown != want || !strings.Contains(clitest.Shown(ev), raw) {
			t.Errorf("%s is shown as %s", raw, clitest.Shown(ev))
		}
	}
}
