package approval

import (
	"encoding/json"
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// allowedCase is a request for a tool, and whether an entry of allowed_tools lets it through.
type allowedCase struct {
	entry string
	agent cli.Agent
	asked cli.ApprovalAsked
	want  bool
}

// An allowed tool runs without asking within the bounds of docs/permissions.md, whatever the agent calls it.
func TestAllowedTools(t *testing.T) {
	dir := t.TempDir()
	command := commandIn(dir)
	const added, updated = cli.FileAdded, cli.FileUpdated
	checkAllowed(t, dir, []allowedCase{
		{"shell", "claude", command("Bash", "touch a; touch b"), true},
		{"shell", "codex", command("shell", "make"), true},
		{"shell", "copilot", command("bash", "make"), true},
		{"shell", "gemini", command("run_shell_command", "make"), true},
		{"shell", "opencode", command("bash", "make"), true},
		{"shell", "goose", command("execute", "make"), true},
		{"exec_command", "codex", command("shell", "make"), true},
		{"shell", "claude", plain("Read"), false},
		{"shell", "claude", cli.ApprovalAsked{Tool: "Bash"}, false},
		{"shell", "claude", cli.ApprovalAsked{Tool: cli.PlanTool, Title: "x"}, false},

		{"edit", "claude", edit("Write", dir+"/a", added), true},
		{"edit", "claude", edit("Write", dir+"/.envrc", added), false},
		{"edit", "claude", edit("Write", "/etc/a", added), false},
		{"edit", "claude", plain("NotebookEdit"), false},
		{"edit", "codex", edit("patch", "a", updated), true},
		{"apply_patch", "codex", edit("patch", "a", updated), true},
		{"edit", "codex", edit("patch", "a", cli.FileDeleted), false},
		{"write", "copilot", edit("create", "a", added), true},
		{"edit", "gemini", edit("write_file", ".envrc", added), false},
		{"edit", "opencode", edit("edit", "a", updated), true},
		{"delete", "goose", plain("delete"), false},
		{"move", "goose", plain("move"), false},

		{"read", "claude", plain("Read"), true},
		{"read", "goose", plain("read"), false}, // perhaps a tool of an MCP server
		{"web", "copilot", plain("web_fetch"), true},
		{"url", "copilot", plain("web_fetch"), true},
		{"fetch", "goose", plain("fetch"), true},
	})
}

func TestAllowedCommandsAndServers(t *testing.T) {
	dir := t.TempDir()
	command := commandIn(dir)
	served := func(tool, server string) cli.ApprovalAsked {
		return cli.ApprovalAsked{Tool: tool, Title: tool, Effect: cli.Effect{Server: server}}
	}
	checkAllowed(t, dir, []allowedCase{
		{"Bash(git log *)", "claude", command("Bash", "git log main"), true},
		{"Bash(git log:*)", "claude", command("Bash", "git log main"), true},
		{"Bash(git log *)", "claude", command("Bash", "git log --output=/x"), false},
		{"Bash(go test *)", "claude", command("Bash", "go test -exec ./evil.sh ./..."), false},
		{"Bash(go test *)", "claude", command("Bash", "go test ./...; id"), false},
		{"Bash(git log *)", "codex", command("shell", "git log main"), false},
		{"shell(git push)", "copilot", command("bash", "git push"), true},
		{"shell(git push)", "copilot", command("bash", "git push x"), false},

		{"mcp:github", "claude", plain("mcp__github__new_issue"), true},
		{"mcp:github", "claude", plain("mcp__github__evil__x"), false},
		{"mcp:github", "copilot", served("github-new_issue", "github"), true},
		{"mcp:github", "copilot", served("github-evil-x", "github-evil"), false},
		{"mcp:github", "copilot", plain("github-evil-x"), false},
		{"mcp:github", "codex", served("github.new_issue", "github"), true},
		{"mcp:github", "gemini", plain("mcp_github_evil_x"), false},
		{"mcp_github_new_issue", "gemini", plain("mcp_github_new_issue"), true},
	})
}

func commandIn(dir string) func(tool, line string) cli.ApprovalAsked {
	return func(tool, line string) cli.ApprovalAsked {
		input, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			panic(err)
		}
		p := cli.ApprovalAsked{Tool: tool, Title: line, Input: input, Effect: cli.EffectOf(input, dir, nil)}
		p.Effect.Shell = cli.ShellRoutine
		return p
	}
}

func edit(tool, path string, kind cli.ChangeKind) cli.ApprovalAsked {
	return cli.ApprovalAsked{Tool: tool, Title: path, Changes: []cli.FileChanged{{Path: path, Kind: kind}}}
}

func plain(tool string) cli.ApprovalAsked { return cli.ApprovalAsked{Tool: tool, Title: "x"} }

func checkAllowed(t *testing.T, dir string, cases []allowedCase) {
	t.Helper()
	for _, c := range cases {
		r := &Requests{turn: RunningTurn{Allowed: []string{c.entry}}}
		a := orchestrator.ApprovalRequest{Agent: c.agent, Dir: dir, Request: &c.asked}
		if got := r.allowedTool(a); (got != "") != c.want {
			t.Errorf("%s of %s by %s: %q", c.asked.Tool, c.agent, c.entry, got)
		}
		r.turn.Mode = cli.Plan
		if got := r.allowedTool(a); got != "" && c.entry != "read" && c.entry != "web" && c.entry != "url" {
			t.Errorf("in plan, %s of %s by %s: %q", c.asked.Tool, c.agent, c.entry, got)
		}
	}
}

// A command with the name of a file of ductor's asks, in whatever way a shell would read the name.
func TestCommandsThatNameOwnFiles(t *testing.T) {
	own := t.TempDir()
	s := &Service{opts: Options{Policy: Policy{Protected: []string{cli.RealPath(own)}}}}
	for command, want := range map[string]bool{
		"touch " + own + "/keys": true, "echo x >" + own + "/keys": true, "sh -c 'touch " + own + "/keys'": true,
		"git log --output=" + own + "/f": true, "true;rm -rf \"" + own + "\"": true, "FILE=" + own + "/x make": true,
		"touch keys": false, "echo 'a; b' > out": false,
	} {
		a := orchestrator.ApprovalRequest{Dir: t.TempDir(), Request: &cli.ApprovalAsked{Tool: "Bash", Title: command}}
		if s.touchesOwn(a) != want {
			t.Errorf("%s: %v", command, !want)
		}
		a.Request.Title, a.Request.Detail = "a command", "true\n"+command
		if s.touchesOwn(a) != want {
			t.Errorf("%s in further lines: %v", command, !want)
		}
	}
}
