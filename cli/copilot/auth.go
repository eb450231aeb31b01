package copilot

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

const (
	loginFix    = "Run `copilot` on the machine and type /login, or set COPILOT_GITHUB_TOKEN for ductor"
	versionWait = 10 * time.Second
)

// Auth looks for a provider of the owner's own, for a token, then asks Copilot itself, which knows what it stored.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	path, err := p.opts.Launcher.LookPath(p.opts.Path)
	if err != nil {
		return cli.Auth{State: cli.NotFound, Path: p.opts.Path, Fix: "Install the GitHub Copilot CLI, or set agents.copilot.path"}
	}
	auth := cli.Auth{State: cli.Authenticated, Path: path, Version: p.version(ctx)}
	known, err := p.loggedIn(ctx)
	env := p.environment(cli.Request{})
	if cli.Variable(env, "COPILOT_PROVIDER_BASE_URL") != "" {
		auth.Method = "COPILOT_PROVIDER_BASE_URL"
		return auth
	}
	for _, key := range []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"} {
		if cli.Variable(env, key) != "" {
			auth.Method = key
			return auth
		}
	}
	switch {
	case err == nil && known:
		auth.Method = "Copilot's own log-in"
		return auth
	case err != nil && p.configured(env):
		auth.Method = "credential file" // it could not be asked, and there is one
		return auth
	}
	auth.State, auth.Fix = cli.Installed, loginFix
	return auth
}

// loggedIn is Copilot's own word.
func (p *Provider) loggedIn(ctx context.Context) (bool, error) {
	var status struct {
		Authenticated bool `json:"isAuthenticated"`
	}
	err := p.inquire(ctx, "auth.getStatus", struct{}{}, &status)
	return status.Authenticated, err
}

// configured says whether somebody logged in on this machine, by Copilot's configuration.
func (p *Provider) configured(env []string) bool {
	home := cli.Variable(env, "COPILOT_HOME")
	if home == "" {
		home = filepath.Join(cli.Variable(env, "HOME"), ".copilot")
	}
	b, err := p.opts.ReadFile(filepath.Join(home, "config.json"))
	return err == nil && strings.Contains(string(b), "lastLoggedInUser")
}

// version is empty where the program does not say.
func (p *Provider) version(ctx context.Context) string {
	out, err := turn.Output(ctx, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"--version"}, Env: p.environment(cli.Request{}),
	}, versionWait)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return strings.TrimSuffix(strings.TrimPrefix(line, "GitHub Copilot CLI "), ".")
}

var _ cli.DeviceLogin = (*Provider)(nil)

// LogIn implements cli.DeviceLogin.
func (p *Provider) LogIn(ctx context.Context, show func(cli.DeviceCode)) error {
	return turn.DeviceLogin(ctx, Agent, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"login", "--device-code"}, Env: p.environment(cli.Request{}), For: cli.Purpose{Agent: Agent},
	}, show)
}
