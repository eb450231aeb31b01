package codex

import (
	"bytes"
	"cmp"
	"context"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// homeVars returns the environment variables that set the location of Codex's data.
func homeVars() []string { return []string{"CODEX_HOME", "CODEX_SQLITE_HOME"} }

// LoginVars returns the environment variables, besides CODEX_HOME, that contain a log-in or set the location of a part
// of Codex's state.
func LoginVars() []string {
	return []string{
		"CODEX_SQLITE_HOME", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY",
	}
}

// HomeSeeds returns the files that a session's own home directory contains at first: the log-in, and the configuration
// that Codex needs to reach its model. owner is the home directory of the user who runs ductor. env is that user's
// environment, which may set another location of Codex's data.
//
// All home directories share one log-in through links. Codex 0.169 preserves such a link: it replaces the link's target
// with the renewed auth.json, and creates its lock file beside the target. A log-in in a keyring cannot be shared,
// because its name in the keyring depends on the path of Codex's home.
func HomeSeeds(owner string, env []string) []cli.HomeSeed {
	dir := home(env, owner)
	return []cli.HomeSeed{
		{From: filepath.Join(dir, "auth.json"), To: ".codex/auth.json", Link: true},
		{From: filepath.Join(dir, ".env"), To: ".codex/.env", Pick: func(owner []byte) ([]byte, error) {
			return cli.PickEnv(owner, "OPENAI_*", "AZURE_*", "AWS_*"), nil
		}},
		{From: filepath.Join(dir, "config.toml"), To: ".codex/config.toml", Pick: ownConfig},
	}
}

// ownConfig reduces a config.toml to the settings that are necessary to reach the model. It removes MCP servers, hooks,
// instructions and trusted projects.
func ownConfig(owner []byte) ([]byte, error) {
	all, own := map[string]any{}, map[string]any{}
	if toml.Unmarshal(owner, &all) != nil {
		all = nil // continue without the user's settings
	}
	for _, name := range []string{
		"model", "model_provider", "model_providers", "model_reasoning_effort", "model_reasoning_summary", "model_verbosity",
		"model_context_window", "model_max_output_tokens", "service_tier", "chatgpt_base_url", "openai_base_url",
		"preferred_auth_method", "forced_login_method", "forced_chatgpt_workspace_id", "sandbox_workspace_write",
	} {
		if value, ok := all[name]; ok {
			own[name] = value
		}
	}
	own["check_for_update_on_startup"] = false
	own["analytics"] = map[string]any{"enabled": false}
	var out bytes.Buffer
	err := toml.NewEncoder(&out).Encode(own)
	return out.Bytes(), err
}

// Auth implements cli.Provider. It looks for a key in the environment and for the credential file. If it finds neither,
// it asks Codex, because the configuration may name a provider that needs no log-in.
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

// needsNoLogin asks Codex whether its model provider works without a log-in.
func (p *Provider) needsNoLogin(ctx context.Context) bool {
	var account struct {
		Account      any  `json:"account"`
		RequiresAuth bool `json:"requiresOpenaiAuth"`
	}
	err := p.inquire(ctx, func(c *rpc.Peer) error { return c.Call(ctx, "account/read", nil, &account) })
	return err == nil && (account.Account != nil || !account.RequiresAuth)
}

// home returns the directory of Codex's data. owner is the home directory of the user.
func home(env []string, owner string) string {
	return cmp.Or(cli.Variable(env, "CODEX_HOME"), filepath.Join(owner, ".codex"))
}

var _ cli.LoginProvider = (*Provider)(nil)

// Logins implements cli.LoginProvider.
func (p *Provider) Logins() []cli.Login {
	return []cli.Login{{ID: "device", Kind: cli.LoginByCode}, {Kind: cli.LoginByCommand, Command: "codex login"}}
}

// LogIn implements cli.LoginProvider.
func (p *Provider) LogIn(ctx context.Context, _ string, show func(cli.DeviceCode)) error {
	return turn.DeviceLogin(ctx, Agent, p.opts.Launcher, cli.Command{
		Path: p.opts.Path, Args: []string{"login", "--device-auth"}, Env: p.env(cli.Request{}), For: cli.Purpose{Agent: Agent},
	}, show)
}
