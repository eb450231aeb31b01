package conversation_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// withOwnersServers adds the servers docs and github. Those in broken have a reason.
func withOwnersServers(o *conversation.Options, broken map[string]string) {
	o.OwnersServers = func(_ context.Context, _ cli.Request,
		wanted func(string) bool) (given []cli.ToolServer, absent []cli.AbsentServer) {
		for _, name := range []string{"docs", "github"} {
			if why := broken[name]; !wanted(name) || why != "" {
				if !wanted(name) {
					why = ""
				}
				absent = append(absent, cli.AbsentServer{Name: name, Why: why})
				continue
			}
			given = append(given, cli.ToolServer{Name: name})
		}
		return given, absent
	}
}

// serversOf returns the names of the servers of a request.
func serversOf(r cli.Request) string {
	var names []string
	for _, s := range r.Servers {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// The owner's servers are for turns of listed users that may do more than plan.
func TestTheOwnersServersAreForListedUsers(t *testing.T) {
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) {
		o.Orders = o.Store.(orchestrator.OrderStore)
		withOwnersServers(o, nil)
	})
	for name, tt := range map[string]struct {
		rights orchestrator.Rights
		want   string
	}{
		"chat":     {orchestrator.Rights{}, "docs github"},
		"press":    {orchestrator.Rights{Of: orchestrator.RightsOfPress, Mode: cli.Ask}, "docs github"},
		"planning": {orchestrator.Rights{Of: orchestrator.RightsOfPress, Mode: cli.Plan}, ""},
		"member":   {orchestrator.Rights{Of: orchestrator.RightsOfMember}, ""},
		"job":      {orchestrator.Rights{Of: orchestrator.RightsOfJob, Mode: cli.Bypass}, ""},
		"terminal": {orchestrator.Rights{Of: orchestrator.RightsOfTerminal}, ""},
	} {
		o := order(name, name, orchestrator.Wants{})
		o.Prompt.Rights = tt.rights
		h.order(t, o)
		h.await(t, "done "+name)
		if r := h.last(); serversOf(r) != tt.want || len(r.Servers)+len(r.Absent) != 2 {
			t.Errorf("%s: the servers are %q, want %q, and not %v", name, serversOf(r), tt.want, r.Absent)
		}
	}
}

// The bounds of the role and of the project of a turn apply together.
func TestBoundsOfARoleAndAProject(t *testing.T) {
	root := t.TempDir()
	roles := mapRoles{"tester": {Prompt: "You test.", Append: true, Bounds: orchestrator.Bounds{
		AllowedTools: []string{"shell",
			"mcp:docs"}, MaxTurns: 9, AddDirs: []string{"/srv/of-role"}, MCP: []string{"docs"},
	}}}
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) {
		o.Dir, o.Roots, o.Roles = root, []string{root}, roles
		o.AllowedTools, o.AddDirs = []string{"Read"}, []string{"/srv/of-all"}
		o.Projects = []orchestrator.ProjectPolicy{{Dir: root, Bounds: orchestrator.Bounds{
			AllowedTools: []string{"web"}, MaxTurns: 3,
			AddDirs: []string{"/srv/of-project"}, MCP: []string{"docs", "github"},
		}}}
		o.Orders = o.Store.(orchestrator.OrderStore)
		withOwnersServers(o, nil)
	})
	check := func(prompt string, allowed, dirs []string, turns int, servers string) {
		t.Helper()
		h.submit(t, here, prompt)
		h.await(t, "done "+prompt)
		r := h.last()
		if !slices.Equal(r.AllowedTools, allowed) || !slices.Equal(r.AddDirs, dirs) ||
			r.MaxTurns != turns || serversOf(r) != servers {
			t.Errorf("%s: %q, %q, %d, %q", prompt, r.AllowedTools, r.AddDirs, r.MaxTurns, serversOf(r))
		}
	}
	check("project", []string{"Read", "web"}, []string{"/srv/of-all", "/srv/of-project"}, 3, "docs github")
	must(t, h.SetRole(t.Context(), here, "tester"))
	check("both", []string{"Read", "shell", "mcp:docs", "web"}, []string{"/srv/of-all", "/srv/of-role",
		"/srv/of-project"}, 3, "docs")
	must(t, h.SetPermission(t.Context(), here, cli.Plan, owner))
	check("plan", []string{"Read", "shell", "mcp:docs", "web"}, []string{"/srv/of-all", "/srv/of-role",
		"/srv/of-project"}, 3, "")
	o := order("job", "job", orchestrator.Wants{})
	o.Prompt.Rights = orchestrator.Rights{Of: orchestrator.RightsOfJob}
	h.order(t, o)
	h.await(t, "done job")
	if r := h.last(); len(r.AllowedTools) != 0 || r.MaxTurns != 3 {
		t.Errorf("a job may use %q without asking, with %d turns", r.AllowedTools, r.MaxTurns)
	}
	for _, tt := range [][3][]string{{{"docs"}, {"github"}, {"none"}}, {{"none"}, {}, {"none"}}, {{},
		{"docs"}, {"docs"}}, {{}, {}, {}}} {
		one, other := orchestrator.Bounds{MCP: tt[0]}, orchestrator.Bounds{MCP: tt[1]}
		if got := one.With(other).MCP; !slices.Equal(got, tt[2]) {
			t.Errorf("%q and %q are %q", tt[0], tt[1], got)
		}
	}
}

// The chat names a server that a turn goes without, each reason once until the server is back.
func TestAnAbsentServerIsNamedOnce(t *testing.T) {
	broken := map[string]string{"github": "no answer"}
	h := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) { withOwnersServers(o, broken) })
	names := func(prompt, want string) {
		t.Helper()
		before := len(h.chat.log())
		h.submit(t, here, prompt)
		h.await(t, "done "+prompt)
		got := strings.Join(h.chat.log()[before:], "\n")
		if want == "" && strings.Contains(got, "MCP server") || !strings.Contains(got, want) {
			t.Errorf("%s: the chat shows\n%s\nwant %q", prompt, got, want)
		}
	}
	names("first", "without the MCP server github: no answer")
	names("second", "")
	broken["github"] = "it is gone"
	names("third", "without the MCP server github: it is gone")
	delete(broken, "github")
	names("fourth", "")
	broken["github"] = "it is gone"
	names("fifth", "without the MCP server github: it is gone")
}
