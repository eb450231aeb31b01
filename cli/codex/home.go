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

// homeVars lead Codex to where it keeps what it knows.
func homeVars() []string { return []string{"CODEX_HOME", "CODEX_SQLITE_HOME"} }

// HomeSeeds are what Codex finds in a session's own home: the owner's log-in, and which model it is asked of. owner is
// the owner's home; env, the owner's environment, may say where Codex's own is instead.
//
// Codex 0.169 renews auth.json by renaming a new file over what a link leads to, with a lock beside that, so all homes
// have one log-in by links. A log-in that is kept in a keyring is stored by the path of Codex's home, and is not found.
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

// ownConfig keeps of a configuration how a model is reached: no MCP servers, no hooks, no instructions, no trust.
func ownConfig(owner []byte) ([]byte, error) {
	all, own := map[string]any{}, map[string]any{}
	if toml.Unmarshal(owner, &all) != nil {
		all = nil // Codex will not say what is wrong with it in a home that does not have it
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
