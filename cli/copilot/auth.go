package copilot

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// Auth looks for a provider of the owner's own, for a token, then asks Copilot itself, which knows what it stored.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	env := p.environment(cli.Request{})
	return turn.Account{
		Agent: Agent, Env: env, Install: "Install the GitHub Copilot CLI, or set agents.copilot.path",
		Fix:  "Run `copilot` on the machine and type /login, or set COPILOT_GITHUB_TOKEN for ductor",
		Keys: []string{"COPILOT_PROVIDER_BASE_URL", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"},
		Else: func(ctx context.Context) string {
			var status struct {
				Authenticated bool `json:"isAuthenticated"`
			}
			switch err := p.inquire(ctx, "auth.getStatus", struct{}{}, &status); {
			case status.Authenticated:
				return "Copilot's own log-in"
			case err != nil && p.configured(env):
				return "credential file" // it could not be asked, and there is one
			}
			return ""
		},
	}.Auth(ctx, p.opts.ProviderOptions)
}

// configured says whether somebody logged in on this machine, by Copilot's configuration.
func (p *Provider) configured(env []string) bool {
	b, err := p.opts.ReadFile(filepath.Join(configDir(env, cli.Variable(env, "HOME")), "config.json"))
	return err == nil && strings.Contains(string(b), "lastLoggedInUser")
}

// configDir is where Copilot keeps what it knows, of a user whose own home is that of owner.
func configDir(env []string, owner string) string {
	return cmp.Or(cli.Variable(env, "COPILOT_HOME"), filepath.Join(owner, ".copilot"))
}

var _ cli.DeviceLogin = (*Provider)(nil)

// LogIn implements cli.DeviceLogin.
func (p *Provider) LogIn(ctx context.Context, show func(cli.DeviceCode)) error {
	return turn.DeviceLogin(ctx, Agent, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"login", "--device-code"}, Env: p.environment(cli.Request{}), For: cli.Purpose{Agent: Agent},
	}, show)
}
