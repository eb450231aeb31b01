package codex

import (
	"strings"
	"testing"
	"time"

	"ductor/cli"
)

func TestCommandLine(t *testing.T) {
	const head = "exec --json --skip-git-repo-check -c analytics.enabled=false "
	cases := []struct {
		name string
		req  cli.Request
		want string
	}{
		{"bare", cli.Request{}, head + "-s read-only -- -"},
		{"a prompt is never in it", cli.Request{Prompt: "--dangerous"}, head + "-s read-only -- -"},
		{"directories", cli.Request{Dir: "/a", Project: cli.EmptyProject, AddDirs: []string{"/b", "/c"}}, head + "-s read-only -C /a --add-dir /b --add-dir /c -- -"},
		{"model and effort", cli.Request{Model: "gpt-6", Effort: "high"}, head + `-s read-only -m gpt-6 -c model_reasoning_effort="high" -- -`},
		{"images end before the thread", cli.Request{Images: []cli.Image{{Path: "/x.png"}, {Path: "/y.png"}}, Resume: "T"}, head + "-s read-only resume -i /x.png -i /y.png -- T -"},
		{"resume", cli.Request{Dir: "/a", Project: cli.EmptyProject, Model: "m", Resume: "T"}, head + "-s read-only -C /a resume -m m -- T -"},
		{"plan", cli.Request{Permission: cli.Plan}, head + "-s read-only -- -"},
		{"ask cannot ask", cli.Request{Permission: cli.Ask}, head + "-s read-only -- -"},
		{"edits", cli.Request{Permission: cli.AcceptEdits}, head + "-s read-only -- -"},
		{"auto", cli.Request{Permission: cli.Auto}, head + "-s workspace-write -- -"},
		{"bypass", cli.Request{Permission: cli.Bypass}, head + "--dangerously-bypass-approvals-and-sandbox -- -"},
		{"tool servers, without values of variables", cli.Request{Servers: []cli.ToolServer{{Name: "own", Path: "/own", Args: []string{"mcp"}, Env: map[string]string{"TOKEN": "secret"}, Trusted: true, Timeout: time.Minute}}},
			head + `-s read-only -c mcp_servers.own.args=["mcp"] -c mcp_servers.own.command="/own" -c mcp_servers.own.default_tools_approval_mode="approve"` +
				` -c mcp_servers.own.env_vars=["TOKEN"] -c mcp_servers.own.startup_timeout_sec=60` +
				` -c mcp_servers.own.tool_timeout_sec=60 -- -`},
		{"a server with a url", cli.Request{Servers: []cli.ToolServer{{
			Name: "web", URL: "https://mcp.invalid", Headers: map[string]string{"X-Key": "VAR"},
			Env: map[string]string{"VAR": "secret"},
		}}},
			head + `-s read-only -c mcp_servers.web.default_tools_approval_mode="prompt"` +
				` -c mcp_servers.web.env_http_headers.X-Key="VAR"` +
				` -c mcp_servers.web.url="https://mcp.invalid" -- -`},
		{"a project with settings", cli.Request{Dir: "/a"}, head + `-s read-only -C /a -c projects={"/"={trust_level="untrusted"},"/a"={trust_level="untrusted"}} -- -`},
		{"a project whose settings are allowed", cli.Request{Dir: "/a", Project: cli.WithProject}, head + `-s read-only -C /a -c projects={"/"={trust_level="trusted"},"/a"={trust_level="trusted"}} -- -`},
		{"extra arguments", cli.Request{ExtraArgs: []string{"--profile", "p"}, Resume: "T"}, head + "-s read-only --profile p resume -- T -"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(argv(c.req, ""), " "); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAConfiguredSandboxCountsWhereTheModeLeavesAChoice(t *testing.T) {
	for mode, want := range map[cli.PermissionMode]string{
		cli.Plan: readOnly, cli.Ask: readOnly, cli.AcceptEdits: readOnly, cli.Auto: fullAccess, cli.Bypass: fullAccess,
	} {
		if got := permissionsOf(mode, false, fullAccess).sandbox; got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
	}
}

func TestCommandsAreShownWithoutTheirShell(t *testing.T) {
	for command, want := range map[string]string{
		`/bin/bash -lc 'echo hi'`:             `echo hi`,
		`/bin/bash -lc 'echo '\''a'\'''`:      `echo 'a'`,
		`/bin/bash -lc "echo \"$HOME\" a\\b"`: `echo "$HOME" a\b`,
		`/bin/bash -lc ls`:                    `ls`,
		`/usr/bin/zsh -lc 'go test ./...'`:    `go test ./...`,
		`/usr/bin/bash -lc ls`:                `ls`,
		`zsh -c 'echo "a b"'`:                 `echo "a b"`,
		`git status`:                          `git status`,
		`/project/bash -lc ls`:                `/project/bash -lc ls`,
		`/usr/bin/fish -lc ls`:                `/usr/bin/fish -lc ls`,
	} {
		if got := plainCommand(command); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}

func TestErrorTextsAreSorted(t *testing.T) {
	cases := []struct {
		text   string
		kind   cli.FailureKind
		reason string
	}{
		{"Reconnecting... 1/5 (unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1:1/v1/responses)", cli.NotLoggedIn, "unexpected status 401 Unauthorized: invalid x-api-key"},
		{"exceeded retry limit, last status: 429 Too Many Requests", cli.LimitReached, "429 Too Many Requests"},
		{"You've hit your usage limit. Try again at 3:05 PM.", cli.LimitReached, "You've hit your usage limit. Try again at 3:05 PM."},
		{"Selected model is at capacity. Please try a different model.", cli.Overloaded, "Selected model is at capacity. Please try a different model."},
		{"unexpected status 404 Not Found: model: not-a-model, url: http://x/v1", cli.UnknownModel, "unexpected status 404 Not Found: model: not-a-model"},
		{`{"error": {"message": "mock error 400", "type": "invalid_request_error"}}`, cli.Refused, "mock error 400"},
		{"Error: thread/resume: thread/resume failed: no rollout found for thread id 1", cli.ResumeFailed, ""},
		{"Reconnecting... waiting for network (Connection failed: error sending request)", cli.NetworkDown, "waiting for network (Connection failed: error sending request)"},
		{"something new", cli.UnknownFailure, "something new"},
	}
	for _, c := range cases {
		if got := kindOf(c.text); got != c.kind {
			t.Errorf("%s: %s, want %s", c.text, got, c.kind)
		}
		if got := reasonOf(c.text); c.reason != "" && got != c.reason {
			t.Errorf("%s: reason %q, want %q", c.text, got, c.reason)
		}
	}
}
