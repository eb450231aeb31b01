package gemini

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/cli/tools"
)

// policyRule is a rule of Gemini's policy engine. If several rules match a tool call, the rule with the highest
// priority decides.
type policyRule struct {
	tools    []string // tools that the rule covers; empty: all tools
	server   string   // MCP server that provides the tools; empty for Gemini's own tools
	modes    []string // modes in which the rule applies; empty: all modes
	decision string
	priority int
}

// Priorities of rules. Rules in the user's own Gemini settings can also have priorities up to 999.
const (
	priorityDenied = 999
	priorityOnly   = 950
	priorityRest   = 900
)

// policyFlag is the flag that names the policy file of ductor.
const policyFlag = "--policy="

// CannotHold implements cli.ToolHolder. It returns a reason if a rule of Gemini cannot express an entry of a list.
func (p *Provider) CannotHold(req cli.Request) string {
	for _, name := range slices.Concat(req.Tools.Only, req.Tools.Denied) {
		server, ofServer := cli.NamedServer(name)
		switch {
		case ofServer && strings.Contains(server, "_"):
			return fmt.Sprintf("Gemini reads the name of the MCP server %s in another way, for its underscore", server)
		case strings.Contains(name, "("):
			return fmt.Sprintf("Gemini has no list that takes %s; name the tool alone", name)
		}
	}
	return ""
}

// rulesOf returns the rules that enforce a list of tools. If the list names permitted tools, the rules deny all other
// tools. For the permitted tools, the rules require a user's approval in the same modes as Gemini's own rules.
func rulesOf(list cli.ToolList) []policyRule {
	var all []policyRule
	servers, denied := cli.Servers(list.Denied)
	for _, server := range servers {
		all = append(all, policyRule{server: server, decision: "deny", priority: priorityDenied})
	}
	if len(denied) > 0 {
		all = append(all, policyRule{tools: denied, decision: "deny", priority: priorityDenied})
	}
	if len(list.Only) == 0 {
		return all
	}
	reading := append(tools.Own(Agent, []string{"read", "search"}), "google_web_search")
	editing := tools.Own(Agent, []string{"edit"})
	servers, only := cli.Servers(list.Only)
	add := func(names []string, server, decision string, modes ...string) {
		if len(names) > 0 || server != "" {
			all = append(all, policyRule{tools: names, server: server, modes: modes, decision: decision, priority: priorityOnly})
		}
	}
	var read, edit, other []string
	for _, name := range only {
		switch {
		case slices.Contains(reading, name):
			read = append(read, name)
		case slices.Contains(editing, name):
			edit = append(edit, name)
		default:
			other = append(other, name)
		}
	}
	add(append(read, "update_topic", "complete_task"), "", "allow")
	add([]string{"exit_plan_mode"}, "", "ask_user", "plan")
	add(edit, "", "ask_user", "default")
	add(edit, "", "allow", "autoEdit", "yolo")
	for _, server := range append(servers, "") {
		names := other
		if server != "" {
			names = nil
		}
		add(names, server, "ask_user", "default", "autoEdit")
		add(names, server, "allow", "yolo")
	}
	return append(all, policyRule{decision: "deny", priority: priorityRest})
}

// policyOf returns the content of the policy file for a list of tools.
func policyOf(list cli.ToolList) ([]byte, error) {
	var b strings.Builder
	for _, r := range rulesOf(list) {
		var names any = r.tools
		if len(r.tools) == 0 {
			names = "*"
		}
		fmt.Fprintf(&b, "[[rule]]\ndecision = %q\npriority = %d\n", r.decision, r.priority)
		for _, field := range []struct {
			key   string
			value any
			given bool
		}{
			{"toolName", names, true}, {"mcpName", r.server, r.server != ""}, {"modes", r.modes, len(r.modes) > 0},
			{"allowRedirection", true, r.decision == "allow"},
		} {
			value, err := json.Marshal(field.value) // JSON strings and arrays are valid TOML
			if err != nil {
				return nil, fmt.Errorf("write a policy: %w", err)
			}
			if field.given {
				fmt.Fprintf(&b, "%s = %s\n", field.key, value)
			}
		}
		b.WriteString("\n")
	}
	return []byte(b.String()), nil
}

// policyFlags returns the argument that names the policy file for a request. writePolicy must have written the file.
func (p *Provider) policyFlags(req cli.Request) []string {
	text, err := policyOf(req.Tools)
	if err != nil || len(text) == 0 {
		return nil
	}
	return []string{policyFlag + cli.KeptFile(p.stateDir(), "policy", ".toml", string(text))}
}

func (p *Provider) writePolicy(req cli.Request) error {
	text, err := policyOf(req.Tools)
	if err != nil || len(text) == 0 {
		return err
	}
	_, err = cli.Keep(p.stateDir(), "policy", ".toml", string(text))
	return err
}

// ownFiles returns the policy files of ductor that args name.
func (p *Provider) ownFiles(args []string) []string {
	var files []string
	for _, arg := range args {
		path, ok := strings.CutPrefix(arg, policyFlag)
		if ok && filepath.Dir(path) == filepath.Clean(p.stateDir()) {
			files = append(files, path)
		}
	}
	return files
}
