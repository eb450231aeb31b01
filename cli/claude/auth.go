package claude

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// askWait bounds what is asked of the CLI outside of turns: its version, its models. It starts cold.
const askWait = 15 * time.Second

// Auth looks whether Claude can be used: a key in the environment, a log-in on disk, else the CLI's own
// word. It spends no token.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	path, err := p.opts.Launcher.LookPath(p.opts.Path)
	if err != nil {
		return cli.Auth{State: cli.NotFound, Fix: "Install Claude Code: npm install -g @anthropic-ai/claude-code"}
	}
	a := cli.Auth{State: cli.Installed, Path: path, Version: p.version(ctx)}
	if a.Method = p.loginMethod(ctx); a.Method != "" {
		a.State = cli.Authenticated
		return a
	}
	a.Fix = "Log in to Claude Code: run `claude` once on this machine and type /login, or set ANTHROPIC_API_KEY"
	return a
}

var versionText = regexp.MustCompile(`\d+\.\d+\.\d+\S*`)

// version is empty where the CLI does not say.
func (p *Provider) version(ctx context.Context) string {
	out, err := turn.Output(ctx, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"--version"}, Env: p.environment(cli.Request{}),
	}, askWait)
	if err != nil {
		p.opts.Logger.Warn("claude does not tell its version", "err", err)
		return ""
	}
	return versionText.FindString(out)
}

// loginMethod says how Claude is logged in; empty for not at all.
func (p *Provider) loginMethod(ctx context.Context) string {
	env := p.environment(cli.Request{})
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
		"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
	} {
		if cli.Variable(env, name) != "" {
			return name
		}
	}
	if p.credentialFile(env) {
		return "credential file"
	}
	reply, err := p.initialize(ctx)
	if err != nil {
		p.opts.Logger.Warn("claude does not tell how it is logged in", "err", err)
		return ""
	}
	return reply.Account.method()
}

// credentialFile says whether a log-in with a subscription lies on disk. An access token that is over is
// good as long as there is a refresh token.
func (p *Provider) credentialFile(env []string) bool {
	dir := cli.Variable(env, "CLAUDE_CONFIG_DIR")
	if dir == "" {
		dir = filepath.Join(cli.Variable(env, "HOME"), ".claude")
	}
	raw, err := p.opts.ReadFile(filepath.Join(dir, ".credentials.json"))
	if err != nil {
		return false
	}
	var file struct {
		OAuth struct {
			Access    string `json:"accessToken"`
			Refresh   string `json:"refreshToken"`
			ExpiresAt int64  `json:"expiresAt"` // milliseconds
		} `json:"claudeAiOauth"`
	}
	if json.Unmarshal(raw, &file) != nil {
		return false
	}
	current := file.OAuth.ExpiresAt == 0 || p.opts.Now().Before(time.UnixMilli(file.OAuth.ExpiresAt))
	return file.OAuth.Refresh != "" || file.OAuth.Access != "" && current
}
