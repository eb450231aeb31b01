package acp

import (
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// Mapping is what a permission mode becomes with an agent that offers certain modes of its own.
type Mapping struct {
	Mode cli.PermissionMode
	// AgentMode is the agent's own mode, an ordinary one if none fits; empty where it has neither, and stays in the
	// one it begins in.
	AgentMode string
	// Cannot says in one sentence what of the mode cannot be promised; empty if nothing.
	Cannot string
}

// agentModes are names of modes as agents have them, bare of case and punctuation, the best one first. Where edits are
// accepted an agent asks for them: its own mode for that would let through what ductor does not.
func agentModes(mode cli.PermissionMode) []string {
	switch mode {
	case cli.Plan:
		return []string{"plan", "planning", "architect", "readonly"}
	case cli.Auto:
		return []string{"auto", "automatic", "autonomous", "agent", "code", "default"}
	case cli.Bypass:
		return []string{"bypasspermissions", "yolo", "fullaccess", "dangerfullaccess", "bypass", "allowall"} // autopilot is another thing: it continues without a prompt
	default:
		return []string{"default", "ask", "askalways", "manual", "normal", "readonly", "agent", "code"}
	}
}

// Permission maps a permission mode to the modes that an agent offers, given by their ids. What the agent asks
// for is decided by ductor in any case, as verdictOn says.
func Permission(mode cli.PermissionMode, offered []string) Mapping {
	m := Mapping{Mode: mode}
	if m.AgentMode = oneOf(agentModes(mode), offered); m.AgentMode != "" {
		return m
	}
	m.AgentMode = oneOf(agentModes(cli.Ask), offered) // it may be in that of an earlier turn
	switch mode {
	case cli.Plan:
		m.Cannot = "the agent has no plan mode: what it asks for is denied, and what it does without asking is not seen"
	case cli.Bypass:
		m.Cannot = "the agent has no mode that lets everything through: what it asks for is allowed for you"
	case cli.Auto:
		m.Cannot = "the agent has no mode of its own judgement: it asks as it does without a mode"
	default:
		m.Cannot = "the agent has no permission modes: what it asks for, and what not, is its own choice"
	}
	return m
}

// oneOf is the first of the modes called so that is offered; empty if none is.
func oneOf(names, offered []string) string {
	for _, want := range names {
		if i := slices.IndexFunc(offered, func(id string) bool { return bareMode(id) == want }); i >= 0 {
			return offered[i]
		}
	}
	return ""
}

// bareMode is the name of a mode without case, punctuation and what precedes it in an address.
func bareMode(id string) string {
	id = id[strings.LastIndexAny(id, "#/")+1:]
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		}
		return -1
	}, id)
}

// verdict is what becomes of a request for permission.
type verdict string

const (
	verdictAsk   verdict = "ask" // a user
	verdictAllow verdict = "allow"
	verdictDeny  verdict = "deny"
)

// The kinds of tool that the protocol knows.
const (
	kindRead   = "read"
	kindSearch = "search"
	kindThink  = "think"
	kindFetch  = "fetch"
	kindEdit   = "edit"
	kindDelete = "delete"
	kindMove   = "move"
	kindRun    = "execute"
	kindSwitch = "switch_mode" // a plan that is to be carried out
)

// verdictOn decides on a request for permission; why is set when it is denied. A list of tools lets nothing through that
// names one of the protected files.
func verdictOn(req cli.Request, t tool, protected []string) (v verdict, why string) {
	named := func(list []string) bool { return slices.Contains(list, t.name) || slices.Contains(list, t.kind) }
	switch {
	case named(req.DeniedTools):
		return verdictDeny, "this tool is not allowed here"
	case len(req.Tools) > 0 && !named(req.Tools):
		return verdictDeny, "this tool is not among those that are allowed here"
	case req.Permission == cli.Bypass:
		return verdictAllow, ""
	case req.Permission == cli.Plan && slices.Contains([]string{kindEdit, kindDelete, kindMove, kindRun}, t.kind):
		return verdictDeny, "the conversation is in plan mode"
	case named(req.AllowedTools) && !t.names(protected, req.Dir):
		return verdictAllow, ""
	case !req.Attended:
		return verdictDeny, "no user is there to allow it"
	}
	return verdictAsk, ""
}

// names says whether a tool names one of files, by the files it is about or in its input.
func (t tool) names(files []string, dir string) bool {
	about := func(path string) bool { return cli.Touches(files, dir, path) }
	return slices.ContainsFunc(t.paths(), about) || cli.Names(files, dir, t.input)
}

// insideOf says whether path lies in dir, links resolved as far as the path exists.
func insideOf(dir, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return cli.Lies(cli.RealPath(path), cli.RealPath(dir))
}
