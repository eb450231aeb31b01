package approval

import (
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/orchestrator"
)

// pattern is a rule that the configuration of a job writes: "Tool", "Tool(command)" or "Tool(first words *)".
type pattern struct {
	tool    string
	command string // with open, the first words of one; empty: what harmlessUse lets through
	open    bool   // further plain words may follow
}

// CheckRights says what is wrong with the rights of a job, in words for whoever wrote them.
func CheckRights(r orchestrator.Rights) error {
	if r.Mode != "" && !slices.Contains(cli.PermissionModes(), r.Mode) {
		return fmt.Errorf("there is no permission mode %q", r.Mode)
	}
	for _, rule := range r.Rules {
		if _, err := parsePattern(rule); err != nil {
			return err
		}
	}
	return nil
}

func parsePattern(text string) (pattern, error) {
	tool, rest, with := strings.Cut(text, "(")
	p := pattern{tool: tool}
	switch {
	case tool == "" || strings.ContainsAny(tool, " \t)*"):
		return pattern{}, fmt.Errorf(`%q should be a tool such as "WebFetch", or one with a command such as "Bash(git status *)"`, text)
	case tool == cli.PlanTool:
		return pattern{}, fmt.Errorf("a plan is always shown: no rule allows %s", cli.PlanTool)
	case !with:
		return p, nil
	}
	command, closed := strings.CutSuffix(rest, ")")
	p.command, p.open = strings.CutSuffix(command, " *")
	if !closed || !plainCommand(p.command) {
		return pattern{}, fmt.Errorf("%q should have one command of plain words in its parentheses: no quotes, variables, wildcards or second commands", text)
	}
	return p, nil
}

// patternCovers says whether a pattern lets an approval through. One that does not parse lets nothing through.
func patternCovers(text string, a orchestrator.ApprovalRequest) bool {
	p, err := parsePattern(text)
	if err != nil || a.Request == nil || a.Request.Tool != p.tool {
		return false
	}
	if p.command == "" {
		return harmlessUse(a)
	}
	command, ok := commandOf(*a.Request, a.Dir)
	if !ok || command == p.command || !p.open {
		return ok && command == p.command
	}
	rest, ok := strings.CutPrefix(command, p.command+" ")
	return ok && plainCommand(command) && plainWords(p.command, rest, a.Request.Links)
}

// harmlessUse says whether a pattern without a command lets a use of its tool through: no command, which is to be written
// out, no wider rights, and no file but those that an edit may write.
func harmlessUse(a orchestrator.ApprovalRequest) bool {
	fields, ok := fieldsOf(a.Request.Input)
	if editsBelow(a) {
		return true
	}
	more := func(name string) bool { _, given := fields[name]; return given }
	return ok && len(a.Request.Changes) == 0 && !slices.ContainsFunc([]string{
		"command", "cwd", "workdir", "permissions", "grantRoot", "additionalPermissions", "networkApprovalContext",
		"file_path", "notebook_path", "path", "paths", "fileName", "resolvedPath", "fileEdits",
	}, more)
}

// openEnded are the commands of which a rule lets through more than what was seen: with further plain words. They build,
// test, run what a project's file names, look at files or make them. Options are not plain words.
func openEnded() []string {
	return []string{
		"git status", "git diff", "git log", "git show", "git blame", "git add", "git fetch", "git ls-files",
		"go build", "go test", "go vet", "go doc", "go list",
		"cargo build", "cargo check", "cargo test", "cargo clippy",
		"npm run", "npm test", "pnpm run", "pnpm test", "yarn run", "yarn test", "dotnet build", "dotnet test", "mvn compile", "mvn test",
		"gradle build", "gradle test", "mix test", "make", "pytest", "tsc", "eslint", "mypy",
		"ls", "wc", "cat", "head", "tail", "stat", "file", "du", "tree", "grep", "rg", "touch", "mkdir",
	}
}

// runners begin commands that run another one, or a program that is read from somewhere else. No lasting rule is made of them.
func runners() []string {
	return []string{
		"sh", "bash", "zsh", "dash", "ksh", "fish", "csh", "tcsh", "pwsh", "powershell", "cmd", "busybox",
		"sudo", "doas", "su", "pkexec", "runuser", "chroot", "env", "nohup", "nice", "timeout", "time", "xargs", "parallel", "watch", "script",
		"eval", "exec", "source", ".", "command", "builtin", "trap", "alias",
		"node", "nodejs", "deno", "bun", "bunx", "npx", "pnpx", "tsx", "uv", "uvx", "pipx", "poetry", "ruby", "bundle", "perl", "php", "lua",
		"java", "scala", "groovy", "Rscript", "julia", "osascript", "awk", "gawk", "sed", "expect", "gdb", "vim", "vi", "ed", "emacs",
		"ssh", "docker", "podman", "kubectl", "nsenter", "at", "crontab", "systemd-run",
	}
}

// lastingCommand says whether a rule for good may allow exactly this command: a plain one that does not begin with a runner. A
// program that is named by its path may be anything tomorrow.
func lastingCommand(command string) bool {
	first, _, _ := strings.Cut(command, " ")
	interpreter := strings.HasPrefix(first, "python") || strings.HasPrefix(first, "pypy")
	return plainCommand(command) && !interpreter && !strings.ContainsAny(first, "/=") && !slices.Contains(runners(), first)
}
