package agent

import (
	"fmt"
	"strconv"
	"strings"
)

// claudeArgs contains the options of Claude Code that the scripted agent supports.
type claudeArgs struct {
	print, verbose, partial, replay bool
	version, fork                   bool
	skipPermissions                 bool
	input, output                   string
	model, effort                   string
	sessionID, resume               string
	mode, promptTool                string
	system, appended                promptOption
	allowed, denied                 []string
	maxTurns                        int
	maxBudget                       float64
	command                         []string // a subcommand, such as auth status
	prompt                          string
	hasPrompt                       bool
}

// parseClaude parses a command line in the same way as Claude Code: an option with several values takes all words up to
// the next option.
func parseClaude(args []string) (claudeArgs, error) {
	a := claudeArgs{input: "text", output: "text", mode: "default",
		system: promptOption{flag: "--system-prompt"}, appended: promptOption{flag: "--append-system-prompt"}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			a.words(args[i+1:])
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			a.words(args[i : i+1])
			continue
		}
		name, value, inline := strings.Cut(arg, "=")
		if a.flag(name) {
			continue
		}
		several, known := claudeValue(name)
		if !known {
			return a, fmt.Errorf("error: unknown option '%s'", arg)
		}
		values := []string{value}
		if !inline {
			if i+1 >= len(args) {
				return a, fmt.Errorf("error: option '%s' argument missing", name)
			}
			i++
			values[0] = args[i]
			for several && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				values = append(values, args[i])
			}
		}
		if err := a.set(name, values); err != nil {
			return a, err
		}
	}
	return a, nil
}

// words parses arguments that are not options: a subcommand or the prompt.
func (a *claudeArgs) words(words []string) {
	for _, w := range words {
		switch {
		case !a.hasPrompt && !a.print && (len(a.command) > 0 || w == "auth"):
			a.command = append(a.command, w)
		case !a.hasPrompt:
			a.prompt, a.hasPrompt = w, true
		}
	}
}

// flag parses an option that has no value. It returns false for an unknown option.
func (a *claudeArgs) flag(name string) bool {
	switch name {
	case "-p", "--print":
		a.print = true
	case "--verbose":
		a.verbose = true
	case "--include-partial-messages":
		a.partial = true
	case "--replay-user-messages":
		a.replay = true
	case "-v", "--version":
		a.version = true
	case "--fork-session":
		a.fork = true
	case "--dangerously-skip-permissions":
		a.skipPermissions, a.mode = true, "bypassPermissions"
	case "--allow-dangerously-skip-permissions":
		a.skipPermissions = true
	case "--bare", "--safe-mode", "--strict-mcp-config", "--no-session-persistence", "--brief", "--ide",
		"--disable-slash-commands", "--include-hook-events", "--text", "--json":
	default:
		return false
	}
	return true
}

// claudeValue reports whether Claude has an option with this name that takes a value, and whether the option can take
// several values.
func claudeValue(name string) (several, known bool) {
	switch name {
	case "--add-dir", "--allowedTools", "--allowed-tools", "--disallowedTools", "--disallowed-tools",
		"--tools", "--mcp-config", "--betas", "--file":
		return true, true
	case "--model", "--effort", "--input-format", "--output-format", "--session-id", "--resume", "-r",
		"--permission-mode", "--permission-prompt-tool", "--max-turns", "--max-budget-usd",
		"--system-prompt", "--append-system-prompt", "--system-prompt-file", "--append-system-prompt-file",
		"--fallback-model", "--settings", "--setting-sources",
		"--json-schema", "--agents", "--agent", "--plugin-dir", "-n", "--name", "--debug-file":
		return false, true
	}
	return false, false
}

func (a *claudeArgs) set(name string, values []string) (err error) {
	v := values[0]
	switch name {
	case "--model":
		a.model = v
	case "--effort":
		a.effort = v
	case "--input-format":
		a.input, err = oneOf(name, v, "text", "stream-json")
	case "--output-format":
		a.output, err = oneOf(name, v, "text", "stream-json")
	case "--session-id":
		a.sessionID = v
	case "--resume", "-r":
		a.resume = v
	case "--permission-mode":
		a.mode, err = oneOf(name, v, "acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")
	case "--permission-prompt-tool":
		a.promptTool = v
	case "--system-prompt":
		a.system.text = v
	case "--system-prompt-file":
		a.system.file = v
	case "--append-system-prompt":
		a.appended.text = v
	case "--append-system-prompt-file":
		a.appended.file = v
	case "--max-turns":
		if a.maxTurns, err = strconv.Atoi(v); err != nil {
			err = fmt.Errorf("error: option '--max-turns <turns>' argument '%s' is invalid", v)
		}
	case "--max-budget-usd":
		if a.maxBudget, err = strconv.ParseFloat(v, 64); err != nil {
			err = fmt.Errorf("error: option '--max-budget-usd <amount>' argument '%s' is invalid", v)
		}
	case "--allowedTools", "--allowed-tools":
		a.allowed = append(a.allowed, toolNames(values)...)
	case "--disallowedTools", "--disallowed-tools":
		a.denied = append(a.denied, toolNames(values)...)
	}
	return err
}

func oneOf(name, v string, choices ...string) (string, error) {
	for _, c := range choices {
		if v == c {
			return v, nil
		}
	}
	return "", fmt.Errorf("error: option '%s' argument '%s' is invalid. Allowed choices are %s.",
		name, v, strings.Join(choices, ", "))
}

// toolNames returns the names of tools in rules such as "Bash(git *),Edit", without the parts in parentheses.
func toolNames(rules []string) []string {
	var names []string
	for _, r := range rules {
		depth, start := 0, 0
		cut := func(end int) {
			name, _, _ := strings.Cut(r[start:end], "(")
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
			start = end + 1
		}
		for i := 0; i < len(r); i++ {
			switch {
			case r[i] == '(':
				depth++
			case r[i] == ')':
				depth--
			case depth == 0 && (r[i] == ',' || r[i] == ' '):
				cut(i)
			}
		}
		cut(len(r))
	}
	return names
}
