package approval

import (
	"slices"
	"strings"
)

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
