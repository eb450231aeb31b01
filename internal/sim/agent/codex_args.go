package agent

import (
	"fmt"
	"strings"
)

// codexArgs contains the options of Codex that the scripted agent supports.
type codexArgs struct {
	version    bool
	command    string // exec, resume, app-server, login
	words      []string
	json       bool
	skipGit    bool
	bypass     bool
	ephemeral  bool
	model      string
	sandbox    string
	dir        string
	lastOutput string
	images     []string
	config     map[string]string
}

// usageError is the error for a command line that Codex rejects with exit code 2.
type usageError struct{ arg, usage string }

func (e usageError) Error() string {
	return fmt.Sprintf("error: unexpected argument '%s' found\n\n  tip: to pass '%s' as a value, use '-- %s'\n\n"+
		"Usage: codex %s\n\nFor more information, try '--help'.", e.arg, e.arg, e.arg, e.usage)
}

// parseCodex parses a command line in the same way as Codex: an option belongs to the command before it, and -i takes
// all words up to the next option.
func parseCodex(args []string) (codexArgs, error) {
	a := codexArgs{sandbox: "read-only", config: map[string]string{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			a.words = append(a.words, args[i+1:]...)
			return a, nil
		case len(arg) < 2 || arg[0] != '-':
			a.word(arg)
			continue
		case a.flag(arg):
			continue
		}
		name, value, inline := strings.Cut(arg, "=")
		if !a.takesValue(name) {
			return a, usageError{name, a.usage()}
		}
		if !inline {
			if i++; i >= len(args) {
				return a, fmt.Errorf("error: a value is required for '%s <VALUE>' but none was supplied\n\nFor more information, try '--help'.", name)
			}
			value = args[i]
		}
		if err := a.set(name, value); err != nil {
			return a, err
		}
		for (name == "-i" || name == "--image") && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			a.images = append(a.images, args[i])
		}
	}
	return a, nil
}

func (a *codexArgs) usage() string {
	switch a.command {
	case "resume":
		return "exec resume [OPTIONS] [SESSION_ID] [PROMPT]"
	case "exec":
		return "exec [OPTIONS] [PROMPT]\n       codex exec [OPTIONS] <COMMAND> [ARGS]"
	}
	return "[OPTIONS] [PROMPT]\n       codex [OPTIONS] <COMMAND> [ARGS]"
}

// word parses an argument that is not an option: a command or an argument of a command.
func (a *codexArgs) word(w string) {
	switch {
	case a.command == "" && (w == "exec" || w == "e"):
		a.command = "exec"
	case a.command == "" && (w == "app-server" || w == "login"):
		a.command = w
	case a.command == "exec" && len(a.words) == 0 && (w == "resume" || w == "fork"):
		a.command = w
	default:
		a.words = append(a.words, w)
	}
}

// flag parses an option that has no value. It returns false for an unknown option.
func (a *codexArgs) flag(name string) bool {
	exec := a.command == "exec" || a.command == "resume" || a.command == "fork"
	switch {
	case name == "--version" || name == "-V":
		a.version = true
	case exec && name == "--json" && !a.json:
		a.json = true
	case exec && name == "--skip-git-repo-check":
		a.skipGit = true
	case name == "--yolo" || name == "--dangerously-bypass-approvals-and-sandbox":
		a.bypass, a.sandbox = true, "danger-full-access"
	case exec && name == "--ephemeral":
		a.ephemeral = true
	case name == "--approve-for-me", name == "--dangerously-bypass-hook-trust", name == "--ignore-user-config",
		name == "--ignore-rules", name == "--strict-config", name == "--oss", name == "--trust":
	default:
		return false
	}
	return true
}

func (a *codexArgs) takesValue(name string) bool {
	switch name {
	case "-c", "--config", "-m", "--model", "-i", "--image", "--enable", "--disable", "--output-schema",
		"-o", "--output-last-message", "-p", "--profile", "--listen":
		return true
	case "-s", "--sandbox", "-C", "--cd", "--add-dir", "--color", "--local-provider":
		return a.command != "resume" && a.command != "fork"
	}
	return false
}

func (a *codexArgs) set(name, v string) error {
	switch name {
	case "-c", "--config":
		k, val, ok := strings.Cut(v, "=")
		if !ok {
			return fmt.Errorf("error: invalid value '%s' for '--config <key=value>': Invalid override (missing '=')", v)
		}
		a.config[k] = strings.Trim(val, `"`)
		if k == "sandbox_mode" {
			a.sandbox = a.config[k]
		}
	case "-m", "--model":
		a.model = v
	case "-s", "--sandbox":
		if v != "read-only" && v != "workspace-write" && v != "danger-full-access" {
			return fmt.Errorf("error: invalid value '%s' for '--sandbox <SANDBOX_MODE>'\n"+
				"  [possible values: read-only, workspace-write, danger-full-access]\n\nFor more information, try '--help'.", v)
		}
		a.sandbox = v
	case "-C", "--cd":
		a.dir = v
	case "-o", "--output-last-message":
		a.lastOutput = v
	case "-i", "--image":
		a.images = append(a.images, v)
	}
	return nil
}
