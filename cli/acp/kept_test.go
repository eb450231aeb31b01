package acp

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/acp/workspace"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// Steps that the previous process of ductor served have not failed. Only the end of a command is unknown.
func TestServedStepsOfThePast(t *testing.T) {
	s, p, turn, prompt := playTurn(t, nil)
	for i, c := range []struct{ method, params, name, title, err string }{
		{workspace.MethodRead, `{"path":"/x/a"}`, toolcall.KindRead, "/x/a", ""},
		{workspace.MethodWrite, `{"path":"/x/b","content":"new"}`, "write", "/x/b", ""},
		{workspace.MethodRun, `{"command":"make"}`, toolcall.KindRun, "make", cli.ToolUntold},
	} {
		m := rpc.Message{ID: json.RawMessage(fmt.Sprint(i)), Method: c.method, Params: json.RawMessage(c.params)}
		s.Agent().(*session).noteServed(m, nil, lostEnd(c.method))
		begun, ended := until[cli.ToolStarted](turn), until[cli.ToolEnded](turn)
		if begun.Name != c.name || begun.Title != c.title || ended.Err != c.err || ended.ID != begun.ID {
			t.Errorf("%s is %+v, %+v", c.method, begun, ended)
		}
	}
	p.endTurn(prompt)
	until[cli.Result](turn)
}

// ductor keeps the offers of a bounded number of unknown sessions, and of a tool no more than it needs.
func TestWhatIsKeptOfAnAgent(t *testing.T) {
	proc := &agentProcess{}
	for i := range 3 * maxEarly {
		proc.keepEarly(cli.AgentSessionID(fmt.Sprint(i)), &update{})
	}
	kept := 0
	proc.early.Range(func(any, any) bool {
		kept++
		return true
	})
	if _, last := proc.early.Load(cli.AgentSessionID(fmt.Sprint(3*maxEarly - 1))); kept > maxEarly || !last {
		t.Errorf("%d offers, the last among them: %v", kept, last)
	}
	r := newReporter(turn.NewEmitter("test", time.Now, func(cli.Event) {}), "/x", Quirks{})
	r.tool(toolcall.Call{ID: "e", ToolKind: toolcall.KindEdit, Title: "Edit", Locations: []toolcall.Location{{Path: "/x/a"}}})
	step := toolcall.Call{ID: servedPrefix + "1", ToolKind: toolcall.KindRead, Locations: []toolcall.Location{{Path: "/x/a"}}}
	for range 3 {
		r.serve(&served{call: step, end: &cli.ToolEnded{}})
	}
	tool := r.tools.all["e"]
	if len(tool.terminals) > 0 {
		t.Errorf("without a terminal it has %q", tool.terminals)
	}
	r.tool(toolcall.Call{ID: "x", ToolKind: toolcall.KindRun, Title: "ls", Input: []byte(`{"command":"ls"}`)})
	run := toolcall.Call{ID: servedPrefix + "2", ToolKind: toolcall.KindRun, Input: []byte(`{"command":"ls"}`)}
	r.serve(&served{call: run, terminal: "t"})
	r.serve(&served{terminal: "t", end: &cli.ToolEnded{Output: "a"}})
	r.tool(toolcall.Call{ID: "x", Status: toolcall.StatusDone})
	if tool = r.tools.all["x"]; len(tool.terminals) > 0 || len(r.tools.commands) > 0 {
		t.Errorf("after its end it has %q and %+v", tool.terminals, r.tools.commands)
	}
}
