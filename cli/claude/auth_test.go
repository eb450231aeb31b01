package claude

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
)

func TestAuth(t *testing.T) {
	noon := time.UnixMilli(1_800_000_000_000)
	tests := []struct {
		name  string
		env   []string
		file  string // .credentials.json; empty for none
		state cli.AuthState
		how   string
	}{
		{"an API key", []string{"ANTHROPIC_API_KEY=k"}, "", cli.Authenticated, "ANTHROPIC_API_KEY"},
		{"a long-lived token", []string{"CLAUDE_CODE_OAUTH_TOKEN=k"}, "", cli.Authenticated, "CLAUDE_CODE_OAUTH_TOKEN"},
		{"a cloud", []string{"CLAUDE_CODE_USE_BEDROCK=1"}, "", cli.Authenticated, "CLAUDE_CODE_USE_BEDROCK"},
		{"a subscription", nil, `{"claudeAiOauth":{"accessToken":"a","expiresAt":1800000000001}}`, cli.Authenticated, "credential file"},
		{"a subscription that refreshes itself", nil, `{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":1}}`, cli.Authenticated, "credential file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := scripted(t, func(o *Options) {
				base := o.Env()
				o.Env = func() []string { return append(base, tt.env...) }
				o.Now = func() time.Time { return noon }
				o.ReadFile = func(path string) ([]byte, error) {
					if tt.file == "" || filepath.Base(path) != ".credentials.json" {
						return nil, fs.ErrNotExist
					}
					return []byte(tt.file), nil
				}
			})
			a := p.Auth(t.Context())
			if a.State != tt.state || a.Method != tt.how || a.Version == "" || a.Path != p.opts.Path {
				t.Errorf("got %+v", a)
			}
		})
	}
}

func TestCredentialFile(t *testing.T) {
	tests := []struct{ name, content string }{
		{"is over and cannot be refreshed", `{"claudeAiOauth":{"accessToken":"a","expiresAt":1}}`},
		{"is empty", `{}`},
		{"is no JSON", `?`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := New(Options{ProviderOptions: cli.ProviderOptions{ReadFile: func(string) ([]byte, error) { return []byte(tt.content), nil }}})
			if p.credentialFile([]string{"HOME=/home/x"}) {
				t.Error("passes for a log-in")
			}
		})
	}
}

func TestCredentialFilePath(t *testing.T) {
	for env, want := range map[string]string{
		"HOME=/home/x":              "/home/x/.claude/.credentials.json",
		"CLAUDE_CONFIG_DIR=/srv/cc": "/srv/cc/.credentials.json",
	} {
		var asked string
		p := New(Options{ProviderOptions: cli.ProviderOptions{ReadFile: func(path string) ([]byte, error) {
			asked = path
			return nil, os.ErrNotExist
		}}})
		p.credentialFile([]string{env})
		if asked != want {
			t.Errorf("%s: asked for %s, want %s", env, asked, want)
		}
	}
}

func TestModels(t *testing.T) {
	p, _ := scripted(t, nil)
	models, err := p.Models(t.Context())
	if err != nil || len(models) == 0 {
		t.Fatalf("models %v, %v", models, err)
	}
	defaults := 0
	for _, m := range models {
		if m.Agent != "claude" || m.ID == "" || m.Name == "" {
			t.Errorf("model %+v", m)
		}
		if m.Default {
			defaults++
		}
	}
	if defaults != 1 {
		t.Errorf("%d default models", defaults)
	}
}

// If the models cannot be listed, the result is an error with a reason, never an old list.
func TestModelsOfABrokenCLI(t *testing.T) {
	for name, script := range map[string]string{
		"dies":           "echo the disk is full >&2; exit 1",
		"prints rubbish": "echo hello; cat >/dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "claude")
			must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
			p, _ := scripted(t, func(o *Options) { o.Path = path })
			ctx, cancel := contextWithAbort(t)
			if name == "prints rubbish" { // and then it waits
				time.AfterFunc(500*time.Millisecond, func() { cancel(cli.ErrAborted) })
			}
			models, err := p.Models(ctx)
			if err == nil || models != nil {
				t.Errorf("models %v", models)
			}
			if name == "dies" && !strings.Contains(fmt.Sprint(err), "disk is full") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	parent := []string{
		"PATH=/bin", "HOME=/h", "ANTHROPIC_API_KEY=k", "CLAUDE_CONFIG_DIR=/c", "CLAUDE_CODE_MAX_RETRIES=3",
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "DUCTOR_TOKEN=secret", "TELEGRAM_TOKEN=secret", "OPENAI_API_KEY=secret",
		"AWS_SECRET_ACCESS_KEY=secret", "MINE=1",
	}
	env := func(o Options, req cli.Request) string {
		o.Env = func() []string { return parent }
		return strings.Join(New(o).environment(req), " ")
	}
	tests := []struct {
		name string
		o    Options
		req  cli.Request
		want string
	}{
		{"only what Claude needs", Options{}, cli.Request{},
			"ANTHROPIC_API_KEY=k CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1 CLAUDE_CODE_DISABLE_CRON=1 CLAUDE_CODE_MAX_RETRIES=3 CLAUDE_CONFIG_DIR=/c DISABLE_AUTOUPDATER=1 HOME=/h MCP_CONNECT_TIMEOUT_MS=15000 PATH=/bin"},
		{"what is allowed on top", Options{ProviderOptions: cli.ProviderOptions{AllowEnv: []string{"MIN*"}}}, cli.Request{},
			"ANTHROPIC_API_KEY=k CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1 CLAUDE_CODE_DISABLE_CRON=1 CLAUDE_CODE_MAX_RETRIES=3 CLAUDE_CONFIG_DIR=/c DISABLE_AUTOUPDATER=1 HOME=/h MCP_CONNECT_TIMEOUT_MS=15000 MINE=1 PATH=/bin"},
		{"the chat, and what the request adds", Options{}, cli.Request{ChatID: -7, Env: map[string]string{"A": "b", "ANTHROPIC_API_KEY": "other"}},
			"A=b ANTHROPIC_API_KEY=other CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1 CLAUDE_CODE_DISABLE_CRON=1 CLAUDE_CODE_MAX_RETRIES=3 CLAUDE_CONFIG_DIR=/c DISABLE_AUTOUPDATER=1 DUCTOR_CHAT_ID=-7 HOME=/h MCP_CONNECT_TIMEOUT_MS=15000 PATH=/bin"},
		{"a project whose settings are allowed", Options{}, cli.Request{Project: cli.WithProject},
			"ANTHROPIC_API_KEY=k CLAUDE_CODE_MAX_RETRIES=3 CLAUDE_CONFIG_DIR=/c DISABLE_AUTOUPDATER=1 HOME=/h MCP_CONNECT_TIMEOUT_MS=15000 PATH=/bin"},
		{"root may bypass", Options{}, cli.Request{Permission: cli.Bypass},
			"ANTHROPIC_API_KEY=k CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD=1 CLAUDE_CODE_DISABLE_CRON=1 CLAUDE_CODE_MAX_RETRIES=3 CLAUDE_CONFIG_DIR=/c DISABLE_AUTOUPDATER=1 HOME=/h IS_SANDBOX=1 MCP_CONNECT_TIMEOUT_MS=15000 PATH=/bin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := env(tt.o, tt.req); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	t.Run("what the owner chose", func(t *testing.T) {
		parent = append(parent, "MCP_CONNECT_TIMEOUT_MS=1", "DISABLE_AUTOUPDATER=0")
		if got := env(Options{}, cli.Request{}); !strings.Contains(got, "MCP_CONNECT_TIMEOUT_MS=1 ") || !strings.Contains(got, "DISABLE_AUTOUPDATER=0") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("cloud keys only for that cloud", func(t *testing.T) {
		parent = append(parent, "CLAUDE_CODE_USE_BEDROCK=1")
		if got := env(Options{}, cli.Request{}); !strings.Contains(got, "AWS_SECRET_ACCESS_KEY=secret") {
			t.Errorf("got %s", got)
		}
	})
}
