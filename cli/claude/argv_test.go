package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
)

const home = `"env":{"CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR":"1"},` // keeps commands in the project

func TestArguments(t *testing.T) {
	const (
		live   = "-p|--input-format|stream-json|--output-format|stream-json|--verbose|--include-partial-messages|--permission-prompt-tool|stdio|--replay-user-messages"
		stream = "-p|--output-format|stream-json|--verbose|--include-partial-messages"
		blocks = "-p|--input-format|stream-json|--output-format|stream-json|--verbose|--include-partial-messages"
		asks   = home + `"permissions":{"ask":["Agent(isolation:worktree)","CronCreate","CronDelete","EnterWorktree","ExitWorktree"]},`
		judges = `"sandbox":{"autoAllowBashIfSandboxed":false},"useAutoModeDuringPlan":false}`
		ours   = "|--settings|{" + asks + judges
		noAsk  = "|--strict-mcp-config|--setting-sources|user"
		asking = noAsk + "|--permission-mode|default" + ours
	)
	tests := []struct {
		name string
		f    format
		req  cli.Request
		want string
	}{
		{"live", formatLive, cli.Request{}, live + asking},
		{"one-shot stream", formatStream, cli.Request{}, stream + asking},
		{"one-shot with images", formatBlocks, cli.Request{}, blocks + asking},

		{"the prompt is never in it", formatStream, cli.Request{Prompt: "rm -rf /", Images: []cli.Image{{Path: "/x.png"}}}, stream + asking},

		{"resume", formatStream, cli.Request{Resume: "U"}, stream + "|--resume|U" + asking},

		{"model and effort", formatStream, cli.Request{Model: "opus[1m]", Effort: "high"}, stream + noAsk + "|--model|opus[1m]|--effort|high|--permission-mode|default" + ours},
		{"the default model is no flag", formatStream, cli.Request{Model: "default"}, stream + asking},

		{"ask", formatStream, cli.Request{Permission: cli.Ask}, stream + asking},
		{"accept edits", formatStream, cli.Request{Permission: cli.AcceptEdits}, stream + asking},
		{"accept edits, asked for", formatLive, cli.Request{Permission: cli.AcceptEdits, Attended: true}, live + asking},
		{"plan", formatStream, cli.Request{Permission: cli.Plan}, stream + noAsk + "|--permission-mode|plan" + ours},
		{"auto", formatStream, cli.Request{Permission: cli.Auto}, stream + noAsk + "|--permission-mode|auto" + ours},
		{"bypass", formatStream, cli.Request{Permission: cli.Bypass}, stream + noAsk + "|--permission-mode|bypassPermissions|--settings|{" + home + judges},

		{"system prompts are in files", formatStream, cli.Request{SystemPrompt: "S", AppendPrompt: "A"}, stream + asking + "|--system-prompt-file|/p/system|--append-system-prompt-file|/p/append"},
		{"a model that looks like a flag", formatStream, cli.Request{Model: "--bare"}, stream + noAsk + "|--model=--bare|--permission-mode|default" + ours},
		{"tools", formatStream, cli.Request{
			Tools: cli.ToolList{Only: []string{"Bash", "Read"}, Denied: []string{"WebFetch", "mcp:github"}}, AllowedTools: []string{"Bash(git *)", "Edit"},
		}, stream + asking + "|--tools|Bash,Read|--allowedTools|Bash(git *),Edit|--disallowedTools|WebFetch,mcp__github"},
		{"a project without settings", formatStream, cli.Request{Dir: "/a", Project: cli.EmptyProject}, stream + "|--setting-sources|user|--add-dir|/a|--permission-mode|default" + ours},
		{"a project with settings", formatStream, cli.Request{Dir: "/a"}, stream + noAsk + "|--add-dir|/a|--permission-mode|default" + ours},
		{"a project whose settings are allowed", formatStream, cli.Request{Dir: "/a", Project: cli.WithProject}, stream + "|--permission-mode|default" + ours},
		{"directories", formatStream, cli.Request{AddDirs: []string{"/a", "/b c"}}, stream + asking + "|--add-dir|/a|--add-dir|/b c"},
		{"tool servers", formatStream, cli.Request{
			AllowedTools: []string{"Edit"},
			Servers:      []cli.ToolServer{{Name: "own", Path: "/bin/own", Args: []string{"mcp"}, Env: map[string]string{"TOKEN": "secret"}, Trusted: true}, {Name: "other", Path: "/other"}},
		}, stream + asking + "|--allowedTools|Edit,mcp__own|--mcp-config|" +
			`{"mcpServers":{"other":{"args":[],"command":"/other","env":{},"type":"stdio"},` +
			`"own":{"alwaysLoad":true,"args":["mcp"],"command":"/bin/own","env":{"TOKEN":"${TOKEN}"},"type":"stdio"}}}`},
		{"extra arguments come last, as they are", formatStream, cli.Request{AddDirs: []string{"/a"}, ExtraArgs: []string{"--fallback-model", "sonnet"}}, stream + asking + "|--add-dir|/a|--fallback-model|sonnet"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := promptFiles{}
			if tt.req.SystemPrompt != "" {
				files = promptFiles{replace: "/p/system", add: "/p/append"}
			}
			args, err := arguments(tt.f, tt.req, files)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.Join(args, "|")); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

// A server with a URL has the names of its secrets on the command line. A limit of turns is there too.
func TestArgumentsOfAServerWithAURL(t *testing.T) {
	args, err := arguments(formatStream, cli.Request{MaxTurns: 3, Servers: []cli.ToolServer{{
		Name: "web", URL: "https://mcp.invalid", Headers: map[string]string{"X-Key": "VAR"},
		Env: map[string]string{"VAR": "secret"},
	}}}, promptFiles{})
	const want = `--max-turns 3 --mcp-config {"mcpServers":{"web":{"headers":{"X-Key":"${VAR}"},"type":"http",` +
		`"url":"https://mcp.invalid"}}}`
	if got := strings.Join(args, " "); err != nil || !strings.HasSuffix(got, want) || strings.Contains(got, "secret") {
		t.Errorf("%s, %v", got, err)
	}
}

// The settings of the owner's arguments stay in effect, in a file that only the owner can read, and none of them lets
// Claude decide in place of the user.
func TestSettingsOfTheOwnerAreJoined(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.json")
	must(t, os.WriteFile(file, []byte(`{"env": {"KEY": "secret"}, /* mine */ "cleanupPeriodDays": 12345678901234567890, "useAutoModeDuringPlan": true}`), 0o600))
	const ask = `"ask":["Agent(isolation:worktree)","CronCreate","CronDelete","EnterWorktree","ExitWorktree"]`
	for _, tt := range []struct{ args, rest, want string }{
		{"--verbose", "--verbose", ""},
		{"--settings|" + file + "|--verbose", "--verbose", `{"cleanupPeriodDays":12345678901234567890,"env":{"CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR":"1","KEY":"secret"},` +
			`"permissions":{` + ask + `},"sandbox":{"autoAllowBashIfSandboxed":false},"useAutoModeDuringPlan":false}`},
		{`--settings={"sandbox":{"enabled":true,"autoAllowBashIfSandboxed":true},"permissions":{"ask":["Bash"],"allow":["Read"]}}`, "",
			`{"env":{"CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR":"1"},"permissions":{"allow":["Read"],` + strings.Replace(ask, `[`, `["Bash",`, 1) + `},"sandbox":{"autoAllowBashIfSandboxed":false,"enabled":true},` +
				`"useAutoModeDuringPlan":false}`},
		{"--settings", "", "error"},
		{"--settings|/no/such/file", "", "error"},
		{`--settings|{"sandbox":7}`, "", "error"},
		{`--settings|{"env":7}`, "", "error"},
		{`--settings|{"permissions":{"ask":7}}`, "", "error"},
		{"--settings=null", "", "error"},
	} {
		req := cli.Request{ExtraArgs: strings.Split(tt.args, "|")}
		p := New(Options{PromptDir: t.TempDir()})
		files, err := p.writePrompts(req)
		args, argsErr := arguments(formatLive, req, files)
		if tt.want == "error" {
			if err == nil || argsErr == nil {
				t.Errorf("%s gives %v, %v", tt.args, err, argsErr)
			}
			continue
		}
		all := strings.Join(args, "|")
		if err != nil || argsErr != nil || !strings.HasSuffix(all, "|"+tt.rest) && tt.rest != "" || strings.Count(all, "--settings") != 1 || strings.Contains(all, "secret") {
			t.Errorf("%s becomes %s, %v, %v", tt.args, all, err, argsErr)
		}
		kept, _ := os.ReadFile(files.settings)
		if strings.TrimSpace(string(kept)) != tt.want || tt.want == "" != (files.settings == "") {
			t.Errorf("%s: the file holds %s", tt.args, kept)
		}
	}
}

// Claude accepts an unknown permission mode without an error.
func TestArgumentsRefuseUnknownPermissionMode(t *testing.T) {
	if args, err := arguments(formatLive, cli.Request{Permission: "yolo"}, promptFiles{}); err == nil {
		t.Fatalf("got %q, want an error", args)
	}
}
