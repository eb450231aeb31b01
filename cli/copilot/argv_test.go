package copilot

import (
	"strings"
	"testing"

	"ductor/cli"
)

func TestCommandLine(t *testing.T) {
	const head = "--output-format json --no-auto-update --no-color --disable-client-telemetry --no-remote-export --no-ask-user"
	cases := []struct {
		name string
		req  cli.Request
		want string
	}{
		{"bare", cli.Request{}, " --session-id=ID"},
		{"a prompt is never in it", cli.Request{Prompt: "--allow-all"}, " --session-id=ID"},
		{"resume", cli.Request{Resume: "S"}, " --resume=S"},
		{"a session that looks like a flag", cli.Request{Resume: "--allow-all"}, " --resume=--allow-all"},
		{"model and effort", cli.Request{Model: "m", Effort: "high"}, " --session-id=ID --model=m --reasoning-effort=high"},
		{"tools", cli.Request{Tools: cli.ToolList{Only: []string{"bash", "view"}, Denied: []string{"write", "mcp:github"}}, AllowedTools: []string{"shell(git:*)"}},
			" --session-id=ID --available-tools=bash,view --excluded-tools=write --allow-tool=shell(git:*) --deny-tool=write --deny-tool=github"},
		{"directories and pictures", cli.Request{AddDirs: []string{"/b"}, Images: []cli.Image{{Path: "/x.png"}}}, " --session-id=ID --add-dir=/b --attachment=/x.png"},
		{"a tool server", cli.Request{Servers: []cli.ToolServer{{Name: "own", Path: "/own", Env: map[string]string{"TOKEN": "secret"}, Trusted: true}}},
			" --session-id=ID --allow-tool=own --additional-mcp-config=" +
				`{"mcpServers":{"own":{"args":[],"command":"/own","env":{"TOKEN":"${TOKEN}"},"tools":["*"],"type":"local"}}}`},
		{"a server with a url", cli.Request{Servers: []cli.ToolServer{{
			Name: "web", URL: "https://mcp.invalid", Headers: map[string]string{"X-Key": "VAR"},
			Env: map[string]string{"VAR": "secret"},
		}}},
			" --session-id=ID --additional-mcp-config=" +
				`{"mcpServers":{"web":{"headers":{"X-Key":"${VAR}"},"tools":["*"],"type":"http",` +
				`"url":"https://mcp.invalid"}}}`},
		{"extra arguments", cli.Request{ExtraArgs: []string{"--agent", "a"}}, " --session-id=ID --agent a"},
		{"plan", cli.Request{Permission: cli.Plan}, " --mode plan --session-id=ID"},
		{"edits", cli.Request{Permission: cli.AcceptEdits}, " --session-id=ID"},
		{"auto", cli.Request{Permission: cli.Auto}, " --assisted-approval --session-id=ID"},
		{"bypass", cli.Request{Permission: cli.Bypass}, " --allow-all --session-id=ID"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			args, err := onceArgs(c.req, "ID")
			if got := strings.Join(args, " "); got != head+c.want || err != nil {
				t.Errorf("\n got %s\nwant %s, %v", got, head+c.want, err)
			}
		})
	}
	if _, err := onceArgs(cli.Request{Permission: "yolo"}, ""); err == nil {
		t.Error("a mode that is not known is taken")
	}
}

// These are all permission modes.
func TestPermissionModes(t *testing.T) {
	var p *Provider
	tests := map[cli.PermissionMode]permission{
		cli.Plan:        {mode: "plan", approval: "manual"},
		cli.Ask:         {mode: "interactive", approval: "manual"},
		cli.AcceptEdits: {mode: "interactive", approval: "manual"},
		cli.Auto:        {mode: "interactive", approval: "assisted", judged: true},
		cli.Bypass:      {mode: "interactive", approval: "allow-all"},
	}
	for _, mode := range cli.PermissionModes() {
		got, err := permissionOf(mode)
		want, listed := tests[mode]
		if err != nil || !listed || got.mode != want.mode || got.approval != want.approval || got.judged != want.judged {
			t.Errorf("%s: %+v, %v", mode, got, err)
		}
		if !p.Cannot(cli.Live, mode).IsZero() || p.Cannot(cli.OneShot, mode).IsZero() != (mode == cli.Bypass) {
			t.Errorf("%s: live cannot %q, one-shot cannot %q", mode, p.Cannot(cli.Live, mode), p.Cannot(cli.OneShot, mode))
		}
	}
	if p.Cannot(cli.Live, "yolo").IsZero() {
		t.Error("a mode that is not known can be had")
	}
}

func TestRules(t *testing.T) {
	got := rules([]string{"shell(git:*)", "write", "MyMCP(tool)", "url()"})
	want := []string{"shell/git:*", "write/", "MyMCP/tool", "url/"}
	for i, r := range got {
		argument := ""
		if r.Argument != nil {
			argument = *r.Argument
		}
		if r.Kind+"/"+argument != want[i] {
			t.Errorf("%+v, want %s", r, want[i])
		}
	}
}

func TestSecretsGoToCopilotAlone(t *testing.T) {
	p := New(Options{
		ProviderOptions: cli.ProviderOptions{
			Env: func() []string {
				return []string{"GH_TOKEN=a", "GITHUB_TOKEN=b", "COPILOT_PROVIDER_API_KEY=c", "OPENAI_API_KEY=d", "ANTHROPIC_API_KEY=e",
					"TELEGRAM_TOKEN=f", "DUCTOR_X=g", "COPILOT_ALLOW_ALL=true", "COPILOT_AUTO_UPDATE=true", "PATH=/bin"}
			},
		},
	})
	got := strings.Join(p.environment(cli.Request{ChatID: 7}), " ")
	want := "COPILOT_ALLOW_ALL= COPILOT_AUTO_UPDATE=false COPILOT_PROVIDER_API_KEY=c DUCTOR_CHAT_ID=7 GH_TOKEN=a GITHUB_TOKEN=b PATH=/bin"
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if key, _ := p.serverFor(cli.Request{}); strings.Contains(key, "=") || len(key) != 32 {
		t.Errorf("the key of a process tells %q", key)
	}
}

func TestAProviderOfTheOwnersOwn(t *testing.T) {
	if got := ownProvider([]string{"PATH=/bin"}); got != nil {
		t.Errorf("%v", got)
	}
	got := ownProvider([]string{"COPILOT_PROVIDER_BASE_URL=http://x", "COPILOT_PROVIDER_TYPE=azure", "COPILOT_PROVIDER_AZURE_API_VERSION=v1",
		"COPILOT_PROVIDER_MAX_PROMPT_TOKENS=12", "COPILOT_PROVIDER_HEADERS=A: 1\\nB:2", "COPILOT_PROVIDER_BEARER_TOKEN=t"})
	if got["type"] != "azure" || got["baseUrl"] != "http://x" || got["maxPromptTokens"] != 12 || got["bearerToken"] != "t" {
		t.Errorf("%v", got)
	}
	if h := got["headers"].(map[string]string); h["A"] != "1" || h["B"] != "2" {
		t.Errorf("headers %v", h)
	}
}

func TestExitsAreSharpenedByTheLastWords(t *testing.T) {
	for words, want := range map[string]cli.FailureKind{
		"Error: No authentication information found.\n\nCopilot can be": cli.NotLoggedIn,
		"Error: No session, task, or name matched 'x'.":                 cli.ResumeFailed,
		"error: unexpected argument '--x' found":                        cli.Refused,
		"panic: at the disco":                                           cli.Crashed,
	} {
		f := exitFailure(&cli.Failure{Kind: cli.Crashed, Detail: words})
		if f.Kind != want {
			t.Errorf("%s: %s", words, f.Kind)
		}
	}
}
