package tools

import (
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/lang"
)

func TestListsInTheWordsOfAnAgent(t *testing.T) {
	list := func(only, denied []string) cli.ToolList { return cli.ToolList{Only: only, Denied: denied} }
	s := func(names ...string) []string { return names }
	for _, c := range []struct {
		name  string
		agent cli.Agent
		lists []cli.ToolList
		want  cli.ToolList
		err   bool
	}{
		{"none", "claude", nil, cli.ToolList{}, false},
		{"a kind", "gemini", []cli.ToolList{list(nil, s("edit"))}, list(nil, s("replace", "write_file")), false},
		{"denials add up", "claude", []cli.ToolList{list(nil, s("web")), list(nil, s("Glob", "WebFetch"))}, list(nil, s("Glob", "WebFetch", "WebSearch")), false},
		{"permissions intersect", "claude", []cli.ToolList{list(s("read", "search"), nil), list(s("Read", "Bash"), nil)}, list(s("Read"), nil), false},
		{"a denial wins", "claude", []cli.ToolList{list(s("search"), s("Grep"))}, list(s("Glob"), s("Grep")), false},
		{"nothing is left", "claude", []cli.ToolList{list(s("read"), nil), list(s("shell"), nil)}, cli.ToolList{}, true},
		{"a kind that the agent has no tool of", "codex", []cli.ToolList{list(nil, s("search"))}, cli.ToolList{}, false},
		{"another agent's tool stands for its kind", "gemini", []cli.ToolList{list(nil, s("WebFetch"))}, list(nil, s("google_web_search", "web_fetch")), false},
		{"and allows nothing", "gemini", []cli.ToolList{list(s("WebFetch"), nil)}, cli.ToolList{}, true},
		{"another agent's rule", "gemini", []cli.ToolList{list(nil, s("Bash(git push *)"))}, cli.ToolList{}, true},
		{"its own rule", "claude", []cli.ToolList{list(nil, s("Bash(git push *)"))}, list(nil, s("Bash(git push *)")), false},
		{"Copilot's rule", "copilot", []cli.ToolList{list(nil, s("shell(git push)"))}, list(nil, s("shell(git push)")), false},
		{"a server and a tool that no table has", "claude", []cli.ToolList{list(nil, s("mcp:github", "Workflow"))}, list(nil, s("Workflow", "mcp:github")), false},
	} {
		got, err := For(c.agent, c.lists...)
		if !got.Equal(c.want) || (err != nil) != c.err {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestEveryKindHasAToolOfEachAgentThatHasOne(t *testing.T) {
	for _, agent := range []cli.Agent{"claude", "codex", "gemini", "copilot"} {
		for _, kind := range []string{"shell", "read", "edit", "web"} {
			if own := Own(agent, []string{kind}); len(own) == 0 || slices.Contains(own, "") {
				t.Errorf("%s of %s is %q", kind, agent, own)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"shell": true, "Bash": true, "Read": true, "edit": true, "mcp:github": true, "Bash(git push *)": true,
		"Workflow": true, "mcp__github__create_issue": true, "github.create_issue": true, "execute": true,
		"": false, " ": false, "Shell": false, "mcp": false, "mcp:": false, "a,b": false, "Bsh": false, "bsh(git *)": false, "Reed": false,
	} {
		if err := Check(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
		if err := CheckList(cli.ToolList{Only: []string{name}}); (err == nil) != (ok && !strings.Contains(name, "(")) {
			t.Errorf("%q as the only tool: %v", name, err)
		}
	}
}

// limited is an agent that ductor can limit by lists, unless cannot is set.
type limited struct {
	cli.Provider
	cannot string
}

func (limited) Agent() cli.Agent                          { return "claude" }
func (l limited) CannotHold(req cli.Request) lang.Message { return lang.Words(l.cannot) }

// plain is an agent that ductor cannot limit.
type plain struct{ cli.Provider }

func (plain) Agent() cli.Agent { return "goose" }

func TestARequestIsLimited(t *testing.T) {
	shell := cli.Request{
		AllowedTools: []string{"read", "web", "edit", "Bash(git *)", "mcp:github"},
		ToolLists:    []cli.ToolList{{}, {Denied: []string{"shell"}}},
	}
	got, err := Limit(limited{}, shell)
	if err != nil || got.Tools.Permits("Bash") || !got.Tools.Permits("Edit") ||
		!slices.Equal(got.AllowedTools, []string{"WebFetch", "WebSearch"}) {
		t.Errorf("%+v, %v", got.Tools, err)
	}
	if _, err := Limit(limited{cannot: "it does not"}, shell); err == nil {
		t.Error("an agent that cannot be held to a list runs with it")
	}
	if _, err := Limit(plain{}, shell); err == nil {
		t.Error("an agent that knows no lists runs with one")
	}
	if _, err := Limit(plain{}, cli.Request{ToolLists: []cli.ToolList{{}}}); err != nil {
		t.Errorf("lists that limit nothing: %v", err)
	}
	absent := []cli.AbsentServer{{Name: "github"}}
	lists := func(only ...string) []cli.ToolList {
		return []cli.ToolList{{Only: only, Denied: []string{"mcp:github", "mcp:other"}}}
	}
	got, err = Limit(limited{}, cli.Request{ToolLists: lists("read", "mcp:github"), Absent: absent})
	if err != nil || got.Tools.Permits("mcp:github") || got.Tools.Permits("Bash") ||
		slices.Contains(got.Tools.Denied, "mcp:github") ||
		!slices.Contains(got.Tools.Denied, "mcp:other") {
		t.Errorf("without an absent server: %+v, %v", got.Tools, err)
	}
	if got, err := Limit(limited{}, cli.Request{ToolLists: lists("mcp:github"), Absent: absent}); err == nil {
		t.Errorf("a list of an absent server alone permits %+v", got.Tools)
	}
	for _, p := range []cli.Provider{plain{}, limited{}} {
		if _, err := Limit(p, cli.Request{MaxTurns: 3}); (err == nil) != (p.Agent() == "claude") {
			t.Errorf("a limit of turns for %s: %v", p.Agent(), err)
		}
	}
}
