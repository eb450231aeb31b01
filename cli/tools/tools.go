// Package tools translates the names in lists of tools into the names that an agent uses. For example, "shell" is Bash
// for Claude and run_shell_command for Gemini. The package contains the only table of these names. It also combines the
// lists that apply to a turn.
//
// The package does not enforce a list. The package of the agent enforces it, together with the code that answers the
// agent's requests.
package tools

import (
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
)

type row struct {
	kind string
	own  map[cli.Agent][]string
}

// table lists the tools of each kind for each agent. The names are from the versions in test/agents, and from older
// versions. The names for Copilot include the kinds of its permission rules (shell, write, url). Codex has no tools to
// read and search files, because it uses its shell instead.
func table() []row {
	return []row{
		{"shell", map[cli.Agent][]string{
			"claude":  {"Bash", "PowerShell", "Monitor", "BashOutput", "KillShell", "KillBash"},
			"codex":   {"shell", "exec_command", "write_stdin", "shell_command", "local_shell"},
			"gemini":  {"run_shell_command", "list_background_processes", "read_background_output"},
			"copilot": {"bash", "read_bash", "write_bash", "stop_bash", "list_bash", "powershell", "shell"},
		}},
		{"read", map[cli.Agent][]string{
			"claude":  {"Read", "NotebookRead", "LS"},
			"codex":   {"view_image"},
			"gemini":  {"read_file", "read_many_files", "list_directory"},
			"copilot": {"view"},
		}},
		{"edit", map[cli.Agent][]string{
			"claude":  {"Edit", "MultiEdit", "Write", "NotebookEdit"},
			"codex":   {"apply_patch", "patch"},
			"gemini":  {"replace", "write_file"},
			"copilot": {"edit", "create", "apply_patch", "write"},
		}},
		{"search", map[cli.Agent][]string{
			"claude":  {"Glob", "Grep"},
			"gemini":  {"glob", "grep_search", "search_file_content"},
			"copilot": {"grep", "glob"},
		}},
		{"web", map[cli.Agent][]string{
			"claude":  {"WebFetch", "WebSearch"},
			"codex":   {"web_search"},
			"gemini":  {"web_fetch", "google_web_search"},
			"copilot": {"web_fetch", "web_search", "url"},
		}},
	}
}

// Kinds returns the kinds of tools, such as "shell". In a list, a kind stands for all tools of that kind.
func Kinds() []string {
	var all []string
	for _, r := range table() {
		all = append(all, r.kind)
	}
	return all
}

// ReadOnly returns a list that limits the agent to reading its project and the web. It returns false if no list can
// limit the agent in this way. The list for Codex denies its shell, so Codex cannot even read files.
func ReadOnly(agent cli.Agent) (list cli.ToolList, held bool) {
	switch {
	case agent == "codex":
		return cli.ToolList{Denied: Own(agent, []string{"shell", "read", "edit"})}, true
	case len(Own(agent, []string{"read"})) == 0:
		return cli.ToolList{}, false
	}
	return cli.ToolList{Only: []string{"read", "search", "web"}}, true
}

// For combines several lists into one, with the agent's own names for tools. The new list denies a tool if any list
// denies the tool. If some lists name permitted tools, the new list permits only tools that are in all of these lists.
// For returns an error if the agent cannot be limited in this way.
func For(agent cli.Agent, lists ...cli.ToolList) (cli.ToolList, error) {
	var all cli.ToolList
	limited := false
	for _, l := range lists {
		for _, name := range l.Denied {
			own, err := deniedTools(agent, name)
			if err != nil {
				return cli.ToolList{}, err
			}
			all.Denied = append(all.Denied, own...)
		}
		if len(l.Only) == 0 {
			continue
		}
		only := Own(agent, l.Only)
		if limited {
			only = both(all.Only, only)
		}
		all.Only, limited = only, true
	}
	slices.Sort(all.Denied)
	all.Denied = slices.Compact(all.Denied)
	all.Only = slices.DeleteFunc(all.Only, func(name string) bool { return slices.Contains(all.Denied, name) })
	if limited && len(all.Only) == 0 {
		return cli.ToolList{}, fmt.Errorf("its lists of tools leave %s none", agent)
	}
	return all, nil
}

// Limit replaces the names in a request's lists of tools by the agent's own names. It removes those allowed tools that
// ductor must check; see unchecked. Limit returns an error if the agent cannot enforce the lists, or the request's
// MaxTurns.
func Limit(p cli.Provider, req cli.Request) (cli.Request, error) {
	agent := p.Agent()
	limited := slices.ContainsFunc(req.ToolLists, func(l cli.ToolList) bool { return !l.Empty() })
	holder, ok := p.(cli.ToolHolder)
	if limited && !ok {
		return req, fmt.Errorf("%s cannot be told which tools to use, and a list of tools counts here", agent)
	}
	if req.MaxTurns > 0 && !LimitsTurns(agent) {
		return req, fmt.Errorf("%s cannot be kept to %d model turns, which is the limit here", agent, req.MaxTurns)
	}
	lists, err := removeServers(req.ToolLists, req.Absent)
	if err != nil {
		return req, err
	}
	list, err := For(agent, lists...)
	if err != nil {
		return req, err
	}
	left := func(s cli.ToolServer) bool { return !list.Permits("mcp:" + s.Name) }
	kept := slices.DeleteFunc(slices.Clone(req.Servers), left)
	// ductor does not offer denied servers to the agent, so the list need not deny them.
	for _, s := range req.Servers {
		list.Denied = slices.DeleteFunc(list.Denied, func(name string) bool { return name == "mcp:"+s.Name })
	}
	req.Tools, req.AllowedTools, req.Servers = list, unchecked(agent, req.AllowedTools), kept
	if !limited {
		return req, nil
	}
	if why := holder.CannotHold(req); why != "" {
		return req, fmt.Errorf("a list of tools cannot be held here: %s", why)
	}
	return req, nil
}

// LimitsTurns reports whether an agent supports cli.Request.MaxTurns, which limits the model's answers in a turn.
func LimitsTurns(agent cli.Agent) bool { return agent == "claude" }

// removeServers removes the names of absent servers from the lists. It returns an error if a list permits only absent
// servers.
func removeServers(lists []cli.ToolList, absent []cli.AbsentServer) ([]cli.ToolList, error) {
	gone := func(name string) bool {
		server, ok := cli.NamedServer(name)
		return ok && slices.ContainsFunc(absent, func(a cli.AbsentServer) bool { return a.Name == server })
	}
	lists = slices.Clone(lists)
	for i, l := range lists {
		only := slices.DeleteFunc(slices.Clone(l.Only), gone)
		if len(only) < len(l.Only) && len(only) == 0 { // without names, the list would permit every tool
			return nil, fmt.Errorf("its list permits only %s, which this turn has not", strings.Join(l.Only, ", "))
		}
		lists[i] = cli.ToolList{Only: only, Denied: slices.DeleteFunc(slices.Clone(l.Denied), gone)}
	}
	return lists, nil
}

func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return !slices.Contains(b, name) })
}

// Own translates names into the agent's own names. It omits the names of other agents' tools.
func Own(agent cli.Agent, names []string) []string {
	var all []string
	for _, name := range names {
		r, known := rowOf(name)
		switch {
		case r.kind == name:
			all = append(all, r.own[agent]...)
		case !known || has(r, agent, name):
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unchecked returns the allowed tools that an agent may use without asking ductor, in the agent's own names. These are
// the tools of the kind "web", because they use no file. ductor must check all other tools: they may use ductor's own
// files, hidden files, or files outside of the project. If the agent knew that such a tool is allowed, it would not
// ask.
func unchecked(agent cli.Agent, allowed []string) []string {
	return slices.DeleteFunc(Own(agent, allowed), func(name string) bool {
		r, _ := rowOf(name)
		// Copilot would interpret a web tool's name that does not start with "url" as the name of an MCP server.
		return r.kind != "web" || agent == "copilot" && !strings.HasPrefix(name, "url")
	})
}

// Covers reports whether a name in a list of allowed tools refers to a tool of an agent. name has no parentheses. tool
// is the name in the agent's requests for approval. Covers does not handle MCP servers.
//
// If the agent is not in the table, the names "shell" and "edit" cover every tool that any known agent uses for this
// purpose. Other kinds, such as "read", cover no tool of such an agent: a tool of this name may belong to an MCP server
// that falsely claims to change nothing.
func Covers(agent cli.Agent, name, tool string) bool {
	r, known := rowOf(name)
	switch {
	case !known || r.kind != name && name == tool:
		return name == tool
	case r.kind == name && inTable(agent):
		return has(r, agent, tool)
	case r.kind == name:
		return (name == "shell" || name == "edit") && KindOf(tool) == name
	// Requests of Codex call every shell tool "shell", and every edit tool "patch". Copilot's names "write" and "url"
	// mean all tools of their kind.
	case agent == "codex", agent == "copilot" && (name == "write" || name == "url"):
		return has(r, agent, name) && has(r, agent, tool)
	}
	return false
}

// CoversPaths is like Covers, for a name with a path, such as "Edit(./docs/**)". Claude applies such a rule for Edit to
// all its tools that change files.
func CoversPaths(agent cli.Agent, name, tool string) bool {
	if agent == "claude" && name == "Edit" {
		name = "edit"
	}
	return Covers(agent, name, tool)
}

// ChangesFiles reports whether a tool changes files, according to its name.
func ChangesFiles(tool string) bool {
	return KindOf(tool) == "edit" || tool == "delete" || tool == "move"
}

func inTable(agent cli.Agent) bool {
	return slices.ContainsFunc(table(), func(r row) bool { return r.own[agent] != nil })
}

// Reading returns the names of tools that change nothing.
func Reading(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		r, _ := rowOf(name)
		return r.kind != "read" && r.kind != "search" && r.kind != "web"
	})
}

// deniedTools returns the agent's own names for a name in the list of denied tools. If the name belongs to another
// agent's tool, deniedTools returns the names of all tools of the same kind.
func deniedTools(agent cli.Agent, name string) ([]string, error) {
	r, known := rowOf(name)
	switch {
	case !known, r.kind != name && has(r, agent, name):
		return []string{name}, nil
	case r.kind != name && strings.Contains(name, "("):
		return nil, fmt.Errorf("%s cannot be kept from %s, which is a rule of another agent", agent, name)
	}
	return r.own[agent], nil
}

// rowOf returns the row for a kind, or for the name of a tool. It ignores a rule in parentheses after the name.
func rowOf(name string) (row, bool) {
	name, _, _ = strings.Cut(name, "(")
	for _, r := range table() {
		if r.kind == name {
			return r, true
		}
		for agent := range r.own {
			if has(r, agent, name) {
				return r, true
			}
		}
	}
	return row{}, false
}

func has(r row, agent cli.Agent, name string) bool {
	name, _, _ = strings.Cut(name, "(")
	return slices.Contains(r.own[agent], name)
}
