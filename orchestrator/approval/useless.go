package approval

import (
	"fmt"
	"strings"

	"ductor/cli"
	"ductor/cli/tools"
)

// InsteadOf returns advice for the owner about an entry of a list of allowed tools that can never allow a request. It
// returns "" for any other entry. The entry must be valid for tools.Check.
func InsteadOf(entry string) string {
	name, rest, inside := strings.Cut(entry, "(")
	command := openPattern(rest)
	kind := tools.KindOf(name)
	switch {
	case name == "ExitPlanMode", name == cli.PlanTool, name == "AskUserQuestion":
		return "remove it: plans and questions always come to you"
	case tools.WholeServer(name) != "":
		return fmt.Sprintf("write %q", "mcp:"+tools.WholeServer(name))
	case !inside:
		return ""
	case kind == "read", kind == "edit":
		return insteadOfPath(entry, name)
	case kind == "web" && (name == "WebFetch" || name == "url"):
		return "" // the agent itself applies an entry such as WebFetch(domain:go.dev)
	// Only requests of shell tools and of SlashCommand contain a command.
	case kind != "shell" && tools.Known(name) && name != "SlashCommand":
		return fmt.Sprintf("write %q", name)
	}
	if _, err := parsePattern(name + "(" + command); err == nil {
		return ""
	}
	plain := strings.TrimRight(strings.TrimSuffix(rest, ")"), " :*")
	switch {
	case plain == "":
		return fmt.Sprintf("write %q", name)
	case plainCommand(plain):
		return fmt.Sprintf("write %q", name+"("+plain+" *)")
	}
	return fmt.Sprintf("write one command of plain words, such as %q, with at most one star, at the end",
		name+"(git log *)")
}

func insteadOfPath(entry, name string) string {
	if _, ok := parsePathRule(entry); ok {
		return ""
	}
	kind := tools.KindOf(name)
	if kind == "read" && name != "Read" && name != "read" {
		return fmt.Sprintf("write %q", name)
	}
	all := "every file"
	if kind == "edit" {
		all = "every file below the folder that isn't hidden"
	}
	return fmt.Sprintf("write a path below the agent's folder, such as %q, or %q for %s", name+"(./src/**)", name, all)
}
