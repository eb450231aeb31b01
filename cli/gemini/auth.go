package gemini

import (
	"context"
	"path/filepath"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// Auth looks for a key, then for the credential file, then for what the user's settings say.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	env := p.env(cli.Request{})
	return turn.Account{
		Agent: Agent, Env: env, Install: "Install the Gemini CLI, or set agents.gemini.path", Fix: loginFix,
		Keys: []string{"GEMINI_API_KEY"}, Else: func(context.Context) string { return p.method(env) },
	}.Auth(ctx, p.opts.ProviderOptions)
}

// method is how Gemini is logged in without a key; empty if it is not.
func (p *Provider) method(env []string) string {
	for _, key := range []string{"GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"} {
		if strings.EqualFold(cli.Variable(env, key), "true") {
			return key
		}
	}
	if raw, err := p.opts.ReadFile(filepath.Join(home(env, cli.Variable(env, "HOME")), "oauth_creds.json")); err == nil && len(raw) > 0 {
		return "credential file"
	}
	switch chosen := p.userAuth(env); chosen {
	case "", "oauth-personal", "gemini-api-key": // which need what was not found
		return ""
	default:
		return "Gemini's own settings (" + chosen + ")"
	}
}
