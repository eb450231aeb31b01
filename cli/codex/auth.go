package codex

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

const loginFix = "Run `codex login` on the machine, or set OPENAI_API_KEY for ductor"

// Auth looks for a key, then for the credential file, then asks Codex itself, whose configuration may name
// a provider that needs neither.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	path, err := p.opts.Launcher.LookPath(p.opts.Path)
	if err != nil {
		return cli.Auth{State: cli.NotFound, Path: p.opts.Path, Fix: "Install the Codex CLI, or set agents.codex.path"}
	}
	auth := cli.Auth{State: cli.Authenticated, Path: path, Version: p.version(ctx)}
	env := p.env(cli.Request{})
	for _, key := range []string{"CODEX_API_KEY", "OPENAI_API_KEY"} {
		if cli.Variable(env, key) != "" {
			auth.Method = key
			return auth
		}
	}
	if b, err := p.opts.ReadFile(filepath.Join(home(env), "auth.json")); err == nil && len(b) > 0 {
		auth.Method = "credential file"
		return auth
	}
	if p.needsNoLogin(ctx) {
		auth.Method = "Codex's own configuration"
		return auth
	}
	auth.State, auth.Fix = cli.Installed, loginFix
	return auth
}

// needsNoLogin is Codex's own word.
func (p *Provider) needsNoLogin(ctx context.Context) bool {
	var account struct {
		Account      any  `json:"account"`
		RequiresAuth bool `json:"requiresOpenaiAuth"`
	}
	err := p.inquire(ctx, func(c *rpc.Peer) error { return c.Call(ctx, "account/read", nil, &account) })
	return err == nil && (account.Account != nil || !account.RequiresAuth)
}

// version is empty where the program does not say.
func (p *Provider) version(ctx context.Context) string {
	out, err := turn.Output(ctx, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"--version"},
		Env: p.env(cli.Request{}), For: cli.Purpose{Agent: Agent},
	}, versionWait)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(out), "codex-cli ")
}

const versionWait = 5 * time.Second

func home(env []string) string {
	if dir := cli.Variable(env, "CODEX_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(cli.Variable(env, "HOME"), ".codex")
}

var _ cli.DeviceLogin = (*Provider)(nil)

// LogIn implements cli.DeviceLogin.
func (p *Provider) LogIn(ctx context.Context, show func(cli.DeviceCode)) error {
	return turn.DeviceLogin(ctx, Agent, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"login", "--device-auth"}, Env: p.env(cli.Request{}), For: cli.Purpose{Agent: Agent},
	}, show)
}
