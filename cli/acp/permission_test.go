package acp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
)

// These are all permission modes with the names of known agents. An agent is held to a mode only by a mode of its own
// with a fitting name, or by an entry of Holds.
func TestPermissionModes(t *testing.T) {
	agents := map[string][]string{
		"gemini":  {"default", "autoEdit", "yolo", "plan"},
		"claude":  {"default", "acceptEdits", "plan", "bypassPermissions"},
		"codex":   {"read-only", "auto", "full-access"},
		"copilot": {"https://agentclientprotocol.com/protocol/session-modes#agent", "https://agentclientprotocol.com/protocol/session-modes#plan", "https://agentclientprotocol.com/protocol/session-modes#autopilot"},
		"cline":   {"plan", "act"},
		"none":    nil,
	}
	want := map[string]map[cli.PermissionMode]string{
		"gemini":  {cli.Plan: "plan", cli.Ask: "default", cli.AcceptEdits: "default", cli.Auto: "default", cli.Bypass: "yolo"},
		"claude":  {cli.Plan: "plan", cli.Ask: "default", cli.AcceptEdits: "default", cli.Auto: "default", cli.Bypass: "bypassPermissions"},
		"codex":   {cli.Plan: "read-only", cli.Ask: "read-only", cli.AcceptEdits: "read-only", cli.Auto: "auto", cli.Bypass: "full-access"},
		"copilot": {cli.Plan: agents["copilot"][1], cli.Ask: agents["copilot"][0], cli.AcceptEdits: agents["copilot"][0], cli.Auto: agents["copilot"][0], cli.Bypass: agents["copilot"][0]},
		"cline":   {cli.Plan: "plan", cli.Ask: "act", cli.AcceptEdits: "act", cli.Auto: "act", cli.Bypass: "act"},
		"none":    {},
	}
	caveats := []string{"copilot bypass", "cline auto", "cline bypass", "none auto", "none bypass"}
	refuses := []string{"copilot ask", "copilot accept-edits", "cline ask", "cline accept-edits",
		"none plan", "none ask", "none accept-edits"}
	for agent, offered := range agents {
		for _, mode := range cli.PermissionModes() {
			key := agent + " " + string(mode)
			h, caveat, held := (&Options{}).holding(cli.Request{Permission: mode}, offered)
			refused := slices.Contains(refuses, key)
			if h.Mode != want[agent][mode] || held == refused ||
				caveat.IsZero() == (refused || slices.Contains(caveats, key)) {
				t.Errorf("%s: %+v, %q, held %v; want %q", key, h, caveat, held, want[agent][mode])
			}
		}
	}
	// The entry for ask serves accept-edits too.
	o := &Options{Holds: map[cli.PermissionMode]Holding{cli.Ask: {Env: map[string]string{"ASK": "1"}}}}
	for mode, want := range map[cli.PermissionMode]bool{
		cli.Ask: true, "": true, cli.AcceptEdits: true, cli.Plan: false,
	} {
		h, _, held := o.holding(cli.Request{Permission: mode}, []string{"act"})
		if held != want || held && (h.Mode != "" || h.Env["ASK"] != "1") {
			t.Errorf("%s: %+v, held %v", mode, h, held)
		}
	}
}

// What is held by its environment or arguments is started with them. A mode of the agent's own would replace that.
func TestAModeThatAnEnvironmentHolds(t *testing.T) {
	e, _ := FindEntry("goose")
	o := &Options{Holds: e.Holds}
	for mode, env := range map[cli.PermissionMode]string{
		cli.Ask: "approve", cli.Auto: "smart_approve", cli.Bypass: "auto",
	} {
		h, _, held := o.holding(cli.Request{Permission: mode}, []string{"auto", "approve", "smart_approve", "chat"})
		if !held || h.Mode != "" || h.Env["GOOSE_MODE"] != env {
			t.Errorf("%s: %+v, held %v", mode, h, held)
		}
	}
}

// A wrapper such as npx hides the program of an agent. Where only its environment holds it, the mode is refused.
func TestAWrapperOfAKnownAgent(t *testing.T) {
	for name, refused := range map[string]bool{"OpenCode": true, "qwen-code": false, "another": false} {
		provider, p := play(t, func(o *Options) { o.Path, o.Holds = "npx", nil })
		p.hello = fmt.Sprintf(`{"protocolVersion":1,"agentInfo":{"name":%q}}`, name)
		p.modes = `{"currentModeId":"build","availableModes":[{"id":"build"},{"id":"plan"},{"id":"default"}]}`
		req := wish(t, "hi")
		req.Permission = cli.Plan
		s := open(t, provider, req)
		session := s.Agent().(*session)
		for _, mode := range []cli.PermissionMode{cli.Plan, cli.Ask, cli.AcceptEdits} {
			_, _, err := session.holding(cli.Request{Permission: mode})
			unheld := provider.Unheld(cli.Request{Permission: mode}).String()
			if (err != nil) != refused || (unheld != "") != refused ||
				refused && (!strings.Contains(unheld, "OpenCode") || !strings.Contains(unheld, "add holds")) {
				t.Errorf("%s, %s: %v, unheld %q", name, mode, err, unheld)
			}
		}
		for _, mode := range []cli.PermissionMode{cli.Auto, cli.Bypass} {
			if _, _, err := session.holding(cli.Request{Permission: mode}); err != nil {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
		}
	}
	for name, id := range map[string]string{
		"OpenCode": "opencode", "qwen-code": "qwen", "goose": "goose", "": "", "gemini-cli": "",
		"@agentclientprotocol/claude-agent-acp": "claude-acp",
	} {
		if e, _ := entryNamed(name); e.ID != id {
			t.Errorf("%q is %q", name, e.ID)
		}
	}
}

func TestWhatIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "own"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	edit := func(path string) tool {
		return tool{name: "write", call: toolcall.Call{
			ToolKind: toolcall.KindEdit, Locations: []toolcall.Location{{Path: path}},
		}}
	}
	run := tool{name: "shell", call: toolcall.Call{ToolKind: toolcall.KindRun}}
	read := tool{name: "cat", call: toolcall.Call{ToolKind: toolcall.KindRead}}
	endsPlan := tool{call: toolcall.Call{ToolKind: toolcall.KindSwitch}}
	var own, like tool
	// Qwen Code's names of tools
	own.merge(toolcall.Call{ToolKind: "other", Meta: []byte(`{"toolName":"mcp__ductor__send_message"}`)}, nil)
	like.merge(toolcall.Call{ToolKind: "other", Title: "mcp__ductor__send_message", Meta: []byte(`{"toolName":"mcp__evil__mcp__ductor__x"}`)}, nil)
	servers := []cli.ToolServer{{Name: "ductor", Trusted: true}, {Name: "evil"}}
	for _, c := range []struct {
		name string
		req  cli.Request
		tool tool
		want verdict
	}{
		{"a tool of ductor's own", cli.Request{Permission: cli.Ask, Attended: true, Servers: servers}, own, verdictAllow},
		{"another that looks so", cli.Request{Permission: cli.Ask, Attended: true, Servers: servers}, like, verdictAsk},
		{"ask: a command", cli.Request{Permission: cli.Ask}, run, verdictAsk},
		{"no mode: a command", cli.Request{}, run, verdictAsk},
		{"bypass", cli.Request{Permission: cli.Bypass}, run, verdictAllow},
		{"bypass, denied by name", cli.Request{Permission: cli.Bypass, Tools: cli.ToolList{Denied: []string{"shell"}}}, run, verdictDeny},
		{"not among the tools", cli.Request{Permission: cli.Bypass, Tools: cli.ToolList{Only: []string{"cat"}}}, run, verdictDeny},
		{"allowed by name, which is decided above", cli.Request{AllowedTools: []string{"shell"}}, run, verdictAsk},
		{"plan: a command, though allowed", cli.Request{Permission: cli.Plan, AllowedTools: []string{"shell"}}, run, verdictDeny},
		{"plan: an edit", cli.Request{Permission: cli.Plan}, edit(dir + "/a"), verdictDeny},
		{"plan: reading", cli.Request{Permission: cli.Plan}, read, verdictAsk},
		{"plan: the plan itself", cli.Request{Permission: cli.Plan}, endsPlan, verdictAsk},
		{"plan: the plan itself, not among the tools", cli.Request{Permission: cli.Plan, Tools: cli.ToolList{Only: []string{"cat"}}},
			endsPlan, verdictAsk},
		{"accept-edits: inside, which is accepted above", cli.Request{Permission: cli.AcceptEdits}, edit(dir + "/new/a"), verdictAsk},
		{"an edit, allowed by name", cli.Request{AllowedTools: []string{toolcall.KindEdit}}, edit(dir + "/new/a"),
			verdictAsk},
		{"an edit of ductor's own, though allowed", cli.Request{AllowedTools: []string{toolcall.KindEdit}},
			edit(dir + "/own/config.toml"), verdictAsk},
		{"and by its input", cli.Request{AllowedTools: []string{"shell"}},
			tool{name: "shell", call: toolcall.Call{ToolKind: toolcall.KindRun, Input: []byte(`{"to":["` + dir + `/link"]}`)}}, verdictAsk},
		{"accept-edits: of nothing named", cli.Request{Permission: cli.AcceptEdits},
			tool{call: toolcall.Call{ToolKind: toolcall.KindEdit}}, verdictAsk},
		{"accept-edits: a command", cli.Request{Permission: cli.AcceptEdits}, run, verdictAsk},
	} {
		c.req.Dir = dir
		for _, attended := range []bool{true, false} {
			c.req.Attended = attended
			want := c.want
			if want == verdictAsk && !attended {
				want = verdictDeny
			}
			if got, why := verdictOn(c.req, c.tool, []string{cli.RealPath(dir) + "/own"}); got != want || (got == verdictDeny) != (why != "") {
				t.Errorf("%s, attended %v: %s (%s), want %s", c.name, attended, got, why, want)
			}
		}
	}
}

// In bypass, a tool that can belong to a server of a list or to another one asks.
func TestAToolOfAnUnclearServerAsks(t *testing.T) {
	github := []string{"mcp:github"}
	for _, c := range []struct {
		tools cli.ToolList
		name  string
		want  verdict
	}{
		{cli.ToolList{Denied: github}, "mcp_github_new_issue", verdictAsk},
		{cli.ToolList{Only: github}, "mcp_github_new_issue", verdictAsk},
		{cli.ToolList{Only: github}, "mcp_github_issue", verdictAllow},
		{cli.ToolList{Only: github}, "mcp_github2_issue", verdictDeny},
	} {
		req := cli.Request{Permission: cli.Bypass, Attended: true, Tools: c.tools}
		if got, _ := verdictOn(req, tool{name: c.name}, nil); got != c.want {
			t.Errorf("%s with %+v: %s, want %s", c.name, c.tools, got, c.want)
		}
	}
}
