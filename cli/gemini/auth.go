package gemini

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

const versionWait = 20 * time.Second

// Auth looks for a key, then for the credential file, then for what the user's settings say.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	path, err := p.opts.Launcher.LookPath(p.opts.Path)
	if err != nil {
		return cli.Auth{State: cli.NotFound, Path: p.opts.Path, Fix: "Install the Gemini CLI, or set agents.gemini.path"}
	}
	auth := cli.Auth{State: cli.Authenticated, Path: path, Version: p.version(ctx), Method: p.method()}
	if auth.Method == "" {
		auth.State, auth.Fix = cli.Installed, loginFix
	}
	return auth
}

// method is how Gemini is logged in; empty if it is not.
func (p *Provider) method() string {
	env := p.env(cli.Request{})
	if cli.Variable(env, "GEMINI_API_KEY") != "" {
		return "GEMINI_API_KEY"
	}
	for _, key := range []string{"GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"} {
		if strings.EqualFold(cli.Variable(env, key), "true") {
			return key
		}
	}
	if raw, err := p.opts.ReadFile(filepath.Join(home(env), "oauth_creds.json")); err == nil && len(raw) > 0 {
		return "credential file"
	}
	switch chosen := p.userAuth(env); chosen {
	case "", "oauth-personal", "gemini-api-key": // which need what was not found
		return ""
	default:
		return "Gemini's own settings (" + chosen + ")"
	}
}

// version is empty where the program does not say.
func (p *Provider) version(ctx context.Context) string {
	out, err := turn.Output(ctx, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"--version"}, Env: p.env(cli.Request{}), For: cli.Purpose{Agent: Agent},
	}, versionWait)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}
