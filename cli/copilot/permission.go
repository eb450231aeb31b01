package copilot

import (
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
)

// permission contains Copilot's settings for a permission mode, for one-shot and for live turns.
type permission struct {
	flags    []string // one-shot: command line arguments
	mode     string   // live: parameter of session.mode.set
	approval string   // live: parameter of session.permissions.setMode
	judged   bool     // live: whether ductor accepts the approvals of Copilot's own risk judge
	cannot   string   // one-shot: the part of the mode that Copilot does not support, or ""
}

// permissionOf returns Copilot's settings for a permission mode. The flags are from version 1.0.102.
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

// Cannot implements cli.Limited.
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

// CannotHold implements cli.ToolHolder. For its own tools, Copilot accepts a list of permitted tools. For tools of MCP
// servers, it accepts only a list of denied tools.
func (*Provider) CannotHold(req cli.Request) string {
	if servers, _ := cli.Servers(req.Tools.Only); len(servers) > 0 {
		return "Copilot cannot be told to use no other MCP servers than some; deny those that it should not use"
	}
	return ""
}

// excluded returns the denied tools that Copilot can hide from the model. Rules deny the others: kinds of tools,
// servers, and tools with an argument. Rules also cover sub-agents.
func excluded(denied []string) []string {
	_, names := cli.Servers(denied)
	return slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "(") })
}

// rule is a permission rule in the server's format.
type rule struct {
	Kind     string  `json:"kind"`
	Argument *string `json:"argument"` // nil means any argument
}

// rules parses rules in the format of the command line: kind or kind(argument).
func rules(texts []string) []rule {
	list := []rule{}
	servers, texts := cli.Servers(texts)
	for _, text := range append(texts, servers...) { // a rule for a server has the server's name as its kind
		kind, rest, bracket := strings.Cut(strings.TrimSpace(text), "(")
		r := rule{Kind: kind}
		if argument, ok := strings.CutSuffix(rest, ")"); bracket && ok && argument != "" {
			r.Argument = &argument
		}
		list = append(list, r)
	}
	return list
}
