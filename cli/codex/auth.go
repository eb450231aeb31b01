package codex

import (
	"cmp"
	"context"
	"path/filepath"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// Auth looks for a key, then for the credential file, then asks Codex itself, whose configuration may name
// a provider that needs neither.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	env := p.env(cli.Request{})
	return turn.Account{
		Agent: Agent, Env: env, Install: "Install the Codex CLI, or set agents.codex.path",
		Fix:  "Run `codex login` on the machine, or set OPENAI_API_KEY for ductor",
		Keys: []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
		Else: func(ctx context.Context) string {
			if b, err := p.opts.ReadFile(filepath.Join(home(env, cli.Variable(env, "HOME")), "auth.json")); err == nil && len(b) > 0 {
				return "credential file"
			}
			if p.needsNoLogin(ctx) {
				return "Codex's own configuration"
			}
			return ""
		},
	}.Auth(ctx, p.opts.ProviderOptions)
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

// home is where Codex keeps what it knows, of a user whose own home is that of owner.
func home(env []string, owner string) string {
	return cmp.Or(cli.Variable(env, "CODEX_HOME"), filepath.Join(owner, ".codex"))
}

var _ cli.DeviceLogin = (*Provider)(nil)

// LogIn implements cli.DeviceLogin.
func (p *Provider) LogIn(ctx context.Context, show func(cli.DeviceCode)) error {
	return turn.DeviceLogin(ctx, Agent, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"login", "--device-auth"}, Env: p.env(cli.Request{}), For: cli.Purpose{Agent: Agent},
	}, show)
}
