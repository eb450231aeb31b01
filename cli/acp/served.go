package acp

import (
	"cmp"
	"errors"
	"strings"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/acp/workspace"
	"ductor/cli/rpc"
)

// served describes a file access or a command that ductor performed for the agent. A command has two served values: one
// for its start and one for its end.
type served struct {
	call     toolcall.Call // empty for the end of a command
	terminal string        // ID of the command's terminal; empty for a file access
	end      *cli.ToolEnded
	change   *cli.FileChanged
}

// servedPrefix is the prefix of the ID that events use for a request that belongs to no tool call of the agent. Users
// see such a request as a separate tool.
const servedPrefix = "served-"

// newWorkspace returns the workspace through which the agent of a session uses files and commands.
func (s *session) newWorkspace(req cli.Request) *workspace.Workspace {
	o := s.options()
	return workspace.New(workspace.Options{
		Launcher: o.Launcher, Agent: o.Agent, Env: o.env(req), Dirs: append([]string{req.Dir}, req.AddDirs...),
		Protected: o.Protected, MissingIsEmpty: o.quirks.MissingIsEmpty, Mode: req.Permission,
		Ended: func(terminal string, end cli.ToolEnded) {
			s.deliver(news{served: &served{terminal: terminal, end: &end}}, 0, 0)
		},
	})
}

// noteServed passes a request that ductor performed for the agent, with its result or error, to the running turn.
func (s *session) noteServed(m rpc.Message, result any, err error) {
	path, line := workspace.Subject(m.Params)
	n := served{end: &cli.ToolEnded{}}
	n.call = toolcall.Call{ID: servedPrefix + rpc.Text(m.ID), Title: path, Locations: []toolcall.Location{{Path: path}}}
	switch m.Method {
	case workspace.MethodRead:
		n.call.ToolKind = toolcall.KindRead
	case workspace.MethodWrite:
		n.call.ToolKind, n.call.Name = toolcall.KindEdit, "write"
	case workspace.MethodRun:
		n.call.ToolKind, n.call.Locations, n.call.Input = toolcall.KindRun, nil, toolcall.CommandInput(line)
	default:
		return
	}
	switch got := result.(type) {
	case workspace.ReadResult:
		n.end.Output = got.Content
	case workspace.WriteResult:
		n.change = &got.Change
	case workspace.RunResult:
		n.terminal, n.end = got.Terminal, nil
	}
	if err != nil {
		n.end = &cli.ToolEnded{Err: cli.ShortLine(err.Error())}
	}
	s.deliver(news{served: &n}, 0, 0)
}

// lostEnd returns the error with which users see a request that the previous process of ductor received. For a command,
// the error says that the result is unknown. For a file access, lostEnd returns nil.
func lostEnd(method string) error {
	if method == workspace.MethodRun {
		return errors.New(cli.ToolUntold)
	}
	return nil
}

type command struct {
	tool *tool          // the agent's tool call for which ductor runs the command; nil if not yet known
	end  *cli.ToolEnded // nil while the command runs
}

// serve emits the events of a request that ductor performed for the agent.
func (r *reporter) serve(n *served) {
	c := r.tools.commands[n.terminal]
	c.end = cmp.Or(n.end, c.end)
	if n.call.ID != "" {
		c.tool = r.toolOf(n)
	}
	if n.terminal != "" {
		r.tools.commands[n.terminal] = c
	}
	if n.change != nil && n.change.Diff != "" {
		r.out.Pass(*n.change)
	}
	if c.tool != nil && c.end != nil && strings.HasPrefix(c.tool.call.ID, servedPrefix) {
		end := *c.end
		end.ID, c.tool.phase = cli.ToolID(c.tool.call.ID), toolEnded
		r.out.ToolEnd(end)
	}
}

// toolOf returns the running tool call for which the agent made the request. If there is none, users see the request as
// a separate tool.
func (r *reporter) toolOf(n *served) *tool {
	for _, t := range r.tools.running {
		// Before a tool starts, the agent may read a file to prepare the tool's input.
		prepares := t.phase == toolNamed && n.call.ToolKind == toolcall.KindRead
		if prepares || t.phase != toolNamed && t.call.Covers(n.call, r.dir) {
			if n.terminal != "" {
				t.terminals = append(t.terminals, n.terminal)
			}
			if n.change != nil {
				t.wrote = append(t.wrote, n.change.Path)
			}
			return t
		}
	}
	own := r.call(n.call)
	delete(r.tools.running, n.call.ID) // later requests do not belong to this tool
	r.startTool(own)
	return own
}

// ended returns the end of the command that ductor ran for a tool, or nil if it ran none. It forgets the tool's
// terminals.
func (r *reporter) ended(t *tool) (end *cli.ToolEnded) {
	for _, c := range t.call.Content {
		if c.Terminal != "" {
			t.terminals = append(t.terminals, c.Terminal)
		}
	}
	for _, id := range t.terminals {
		c := r.tools.commands[id]
		if end = cmp.Or(end, c.end); c.end != nil {
			delete(r.tools.commands, id)
		}
	}
	t.terminals, t.wrote = nil, nil
	return end
}
