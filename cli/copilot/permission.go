package copilot

import (
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
)

// permission is how a permission mode is put to Copilot, in both of its modes. There is no other place for it.
type permission struct {
	flags    []string // one-shot: of the command line
	mode     string   // live: session.mode.set
	approval string   // live: session.permissions.setMode
	judged   bool     // live: what Copilot's own judge of risks lets through is allowed by us
	cannot   string   // one-shot: what the mode promises and Copilot does not do; empty if nothing
}

// permissionOf maps a mode. Flags are those of version 1.0.102.
func permissionOf(mode cli.PermissionMode) (permission, error) {
	const manual, interactive = "manual", "interactive"
	switch mode {
	case "", cli.Ask:
		return permission{mode: interactive, approval: manual,
			cannot: "a Copilot that is run once cannot ask: what needs permission is denied"}, nil
	case cli.Plan:
		return permission{flags: []string{"--mode", "plan"}, mode: "plan", approval: manual,
			cannot: "a Copilot that is run once cannot have its plan approved: answer it with the next message"}, nil
	case cli.AcceptEdits:
		return permission{flags: []string{"--allow-tool=write"}, mode: interactive, approval: manual,
			cannot: "a Copilot that is run once cannot ask: commands are denied"}, nil
	case cli.Auto:
		return permission{flags: []string{"--assisted-approval"}, mode: interactive, approval: "assisted", judged: true,
			cannot: "a Copilot that is run once cannot ask: what its own judgement does not let through is denied"}, nil
	case cli.Bypass:
		return permission{flags: []string{"--allow-all"}, mode: interactive, approval: "allow-all"}, nil
	}
	return permission{}, fmt.Errorf("Copilot has no permission mode %q", mode)
}

// Cannot says what a permission mode promises and Copilot does not do when it is run in mode; see cli.Limited.
func (*Provider) Cannot(mode cli.Mode, p cli.PermissionMode) string {
	m, err := permissionOf(p)
	switch {
	case err != nil:
		return err.Error()
	case mode == cli.OneShot:
		return m.cannot
	}
	return ""
}

// CannotHold says that Copilot can be told which tools there are, and of MCP servers only which not; see cli.ToolHolder.
func (*Provider) CannotHold(req cli.Request) string {
	if servers, _ := cli.Servers(req.Tools.Only); len(servers) > 0 {
		return "Copilot cannot be told to use no other MCP servers than some; deny those that it should not use"
	}
	return ""
}

// excluded are the tools that the model is not offered. What is denied is a rule as well, which also holds for sub-agents: one
// about a kind of tool, about a server, or with an argument is nothing else.
func excluded(denied []string) []string {
	_, names := cli.Servers(denied)
	return slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "(") })
}

// rule is a permission rule as the server takes it.
type rule struct {
	Kind     string  `json:"kind"`
	Argument *string `json:"argument"` // null is any
}

// rules reads rules as the command line has them: kind, or kind(argument).
func rules(texts []string) []rule {
	list := []rule{}
	servers, texts := cli.Servers(texts)
	for _, text := range append(texts, servers...) { // the kind of a server's rule is its name
		kind, rest, bracket := strings.Cut(strings.TrimSpace(text), "(")
		r := rule{Kind: kind}
		if argument, ok := strings.CutSuffix(rest, ")"); bracket && ok && argument != "" {
			r.Argument = &argument
		}
		list = append(list, r)
	}
	return list
}
