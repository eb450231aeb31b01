package copilot

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// Auth implements cli.Provider. It looks for a model provider of the user's own and for a token in the environment. If
// it finds neither, it asks Copilot, which knows its stored log-in.
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
				return "credential file" // Copilot did not answer, but a file exists
			}
			return ""
		},
	}.Auth(ctx, p.opts.ProviderOptions)
}

// configured reports whether Copilot's configuration contains a log-in.
func (p *Provider) configured(env []string) bool {
	b, err := p.opts.ReadFile(filepath.Join(configDir(env, cli.Variable(env, "HOME")), "config.json"))
	return err == nil && strings.Contains(string(b), "lastLoggedInUser")
}

// configDir returns the directory of Copilot's data. owner is the home directory of the user.
func configDir(env []string, owner string) string {
	return cmp.Or(cli.Variable(env, "COPILOT_HOME"), filepath.Join(owner, ".copilot"))
}

var _ cli.LoginProvider = (*Provider)(nil)

// Logins implements cli.LoginProvider.
func (p *Provider) Logins() []cli.Login {
	return []cli.Login{{ID: "device", Kind: cli.LoginByCode}, {Kind: cli.LoginByCommand, Command: "copilot login"}}
}

// LogIn implements cli.LoginProvider.
func (p *Provider) LogIn(ctx context.Context, _ string, show func(cli.DeviceCode)) error {
	return turn.DeviceLogin(ctx, Agent, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"login", "--device-code"}, Env: p.environment(cli.Request{}), For: cli.Purpose{Agent: Agent},
	}, show)
}
