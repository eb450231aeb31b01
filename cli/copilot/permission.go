package copilot

import (
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
)

// permission contains Copilot's settings for a permission mode.
type permission struct {
	// Settings for one-shot mode.
	flags  []string // command-line arguments
	cannot string   // why Copilot does not fully support the permission mode, or ""

	// Settings for live mode.
	mode     string // parameter of session.mode.set
	approval string // parameter of session.permissions.setMode
	judged   bool   // whether ductor allows what Copilot's own risk assessment approves
}

// permissionOf returns Copilot's settings for a permission mode. The flags are from version 1.0.102.
func permissionOf(mode cli.PermissionMode) (permission, error) {
	const manual, interactive = "manual", "interactive"
	switch mode {
	// AcceptEdits is the same as Ask, because Copilot's own rule for edits would also allow edits of hidden files.
	case "", cli.Ask, cli.AcceptEdits:
		return permission{mode: interactive, approval: manual,
			cannot: "a Copilot that is run once cannot ask: what needs permission is denied, " + cli.OnceDenies}, nil
	case cli.Plan:
		return permission{flags: []string{"--mode", "plan"}, mode: "plan", approval: manual,
			cannot: "a Copilot that is run once cannot have its plan approved: answer it with the next message"}, nil
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

// CannotHold implements cli.ToolHolder. Copilot accepts a list of permitted tools only for its own tools. Tools of MCP
// servers can only be denied.
func (*Provider) CannotHold(req cli.Request) string {
	if servers, _ := cli.Servers(req.Tools.Only); len(servers) > 0 {
		return "Copilot cannot be told to use no other MCP servers than some; deny those that it should not use"
	}
	return ""
}

// excluded returns the denied tools that Copilot can hide from the model. Copilot cannot hide a tool of an MCP server,
// or a tool for certain arguments only. For these tools, ductor uses permission rules.
func excluded(denied []string) []string {
	_, names := cli.Servers(denied)
	return slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "(") })
}

// rule is a permission rule, in the format of the live server.
type rule struct {
	Kind     string  `json:"kind"`
	Argument *string `json:"argument"` // nil means any argument
}

// rules parses permission rules in the format of the command line: kind or kind(argument).
func rules(texts []string) []rule {
	list := []rule{}
	servers, texts := cli.Servers(texts)
	// A rule whose kind is a server's name covers all tools of that MCP server.
	for _, text := range append(texts, servers...) {
		kind, rest, bracket := strings.Cut(strings.TrimSpace(text), "(")
		r := rule{Kind: kind}
		if argument, ok := strings.CutSuffix(rest, ")"); bracket && ok && argument != "" {
			r.Argument = &argument
		}
		list = append(list, r)
	}
	return list
}
