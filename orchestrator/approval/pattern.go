package approval

import (
	"slices"
	"strings"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// pattern allows requests of a job. The configuration contains it as "Tool", "Tool(command)" or "Tool(first words *)".
type pattern struct {
	tool    string
	command string // the command, or its first words if more may follow; empty in the form "Tool"
	open    bool   // any plain words may follow the command; see plainWords
}

// CheckRights returns a *lang.Error for the author of a job if the rights of the job are invalid.
func CheckRights(r orchestrator.Rights) error {
	if r.Mode != "" && !slices.Contains(cli.PermissionModes(), r.Mode) {
		return invalid(func(p lang.Printer) string { return p.Text("job.no-mode", string(r.Mode)) })
	}
	for _, rule := range r.Rules {
		if _, err := parsePattern(rule); err != nil {
			return err
		}
	}
	return nil
}

func invalid(explain func(p lang.Printer) string) error { return &lang.Error{Explain: explain} }

func parsePattern(text string) (pattern, error) {
	tool, rest, with := strings.Cut(text, "(")
	p := pattern{tool: tool}
	switch {
	case tool == "" || strings.ContainsAny(tool, " \t)*"):
		return pattern{}, invalid(func(p lang.Printer) string { return p.Text("job.no-rule", text) })
	case tool == cli.PlanTool:
		return pattern{}, invalid(func(p lang.Printer) string { return p.Text("job.plan-rule", cli.PlanTool) })
	case !with:
		return p, nil
	}
	command, closed := strings.CutSuffix(rest, ")")
	p.command, p.open = strings.CutSuffix(command, " *")
	if !closed || !plainCommand(p.command) {
		return pattern{}, invalid(func(p lang.Printer) string { return p.Text("job.bad-rule-command", text) })
	}
	return p, nil
}

// patternCovers parses a pattern and reports whether it allows a request. An invalid pattern allows nothing.
func patternCovers(text string, a orchestrator.ApprovalRequest) bool {
	p, err := parsePattern(text)
	if err != nil || a.Request == nil || a.Request.Tool != p.tool {
		return false
	}
	if p.command == "" {
		return harmlessUse(a)
	}
	command := commandOf(a)
	if command == p.command || !p.open {
		return command == p.command
	}
	rest, ok := strings.CutPrefix(command, p.command+" ")
	return ok && plainCommand(command) && plainWords(p.command, rest, a.Links)
}

// harmlessUse reports whether a pattern that names only a tool, such as "Read", allows a request of that tool. Such a
// pattern never allows commands or wider permissions. It allows changes of files only if the mode accept-edits allows
// them.
func harmlessUse(a orchestrator.ApprovalRequest) bool {
	e := a.Request.Effect
	return editsBelow(a) || len(a.Request.Changes) == 0 && e.Reach == cli.ReachTool && e.Shell == cli.NoShell
}

// openEnded lists commands that stay harmless if words are added to them. Therefore a rule for such a command may also
// allow requests with more words, provided that these are plain words and not options. These commands build, run tests,
// run targets of a build file, read files, or create files.
func openEnded() []string {
	return []string{
		"git status", "git diff", "git log", "git show", "git blame", "git add", "git fetch", "git ls-files",
		"go build", "go test", "go vet", "go doc", "go list",
		"cargo build", "cargo check", "cargo test", "cargo clippy",
		"npm run", "npm test", "pnpm run", "pnpm test", "yarn run", "yarn test", "dotnet build", "dotnet test",
		"mvn compile", "mvn test",
		"gradle build", "gradle test", "mix test", "make", "pytest", "tsc", "eslint", "mypy",
		"ls", "wc", "cat", "head", "tail", "stat", "file", "du", "tree", "grep", "rg", "touch", "mkdir",
	}
}

// runners lists commands that run another command or a downloaded program. ductor never offers to allow such a command
// permanently.
func runners() []string {
	return []string{
		"sh", "bash", "zsh", "dash", "ksh", "fish", "csh", "tcsh", "pwsh", "powershell", "cmd", "busybox",
		"sudo", "doas", "su", "pkexec", "runuser", "chroot", "env", "nohup", "nice", "timeout", "time", "xargs",
		"parallel", "watch", "script",
		"eval", "exec", "source", ".", "command", "builtin", "trap", "alias",
		"node", "nodejs", "deno", "bun", "bunx", "npx", "pnpx", "tsx", "uv", "uvx", "pipx", "poetry", "ruby",
		"bundle", "perl", "php", "lua",
		"java", "scala", "groovy", "Rscript", "julia", "osascript", "awk", "gawk", "sed", "expect", "gdb", "vim",
		"vi", "ed", "emacs",
		"ssh", "docker", "podman", "kubectl", "nsenter", "at", "crontab", "systemd-run",
	}
}

// lastingCommand reports whether ductor may offer a lasting rule for exactly this command. The command must be plain,
// and its program must not run other programs (see runners). The program must not be given as a path, because the file
// at a path can change.
func lastingCommand(command string) bool {
	first, _, _ := strings.Cut(command, " ")
	interpreter := strings.HasPrefix(first, "python") || strings.HasPrefix(first, "pypy")
	return plainCommand(command) && !interpreter && !strings.ContainsAny(first, "/=") &&
		!slices.Contains(runners(), first)
}
