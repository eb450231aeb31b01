package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ductor/cli"
	"ductor/cli/turn"
)

// homeVars returns the environment variables that set the location of Gemini's data.
func homeVars() []string { return []string{"GEMINI_CLI_HOME"} }

// LoginVars returns the environment variables, besides GEMINI_CLI_HOME, that contain a log-in or set the location of a
// part of Gemini's state.
func LoginVars() []string {
	return []string{
		"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_*", "GOOGLE_APPLICATION_CREDENTIALS",
	}
}

// HomeSeeds returns the files that a session's own home directory contains at first: the log-in of the user who runs
// ductor, and the chosen log-in method. owner is that user's home directory. env is the user's environment, which may
// set another location of Gemini's data.
//
// Gemini 0.61 overwrites the log-in file in place, so links to the file stay valid.
func HomeSeeds(owner string, env []string) []cli.HomeSeed {
	dir := home(env, owner)
	return []cli.HomeSeed{
		{From: filepath.Join(dir, "oauth_creds.json"), To: ".gemini/oauth_creds.json", Link: true},
		{From: filepath.Join(dir, "gemini-credentials.json"), To: ".gemini/gemini-credentials.json", Link: true},
		{From: filepath.Join(dir, "google_accounts.json"), To: ".gemini/google_accounts.json"},
		{From: filepath.Join(dir, ".env"), To: ".gemini/.env", Pick: func(owner []byte) ([]byte, error) {
			return cli.PickEnv(owner, "GEMINI_API_KEY", "GOOGLE_*"), nil
		}},
		{From: filepath.Join(dir, "settings.json"), To: ".gemini/settings.json", Pick: ownSettings},
	}
}

// ownSettings reduces a settings.json to the log-in method. It removes MCP servers, hooks, extensions and names of
// memory files.
func ownSettings(owner []byte) ([]byte, error) {
	var theirs struct {
		Security struct {
			Auth json.RawMessage `json:"auth"`
		} `json:"security"`
		Selected string `json:"selectedAuthType"` // log-in method in settings of versions before 0.5
	}
	if json.Unmarshal(cli.PlainJSON(owner), &theirs) != nil {
		theirs.Security.Auth = nil
	}
	settings := map[string]any{
		"general": map[string]any{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
		"privacy": map[string]any{"usageStatisticsEnabled": false},
	}
	switch {
	case theirs.Security.Auth != nil:
		settings["security"] = map[string]any{"auth": theirs.Security.Auth}
	case theirs.Selected != "":
		settings["security"] = map[string]any{"auth": map[string]any{"selectedType": theirs.Selected}}
	}
	return json.MarshalIndent(settings, "", "  ")
}

// userAuth returns the log-in method in the user's settings, or "".
func (p *Provider) userAuth(env []string) string {
	var settings struct {
		Security struct {
			Auth struct {
				Selected string `json:"selectedType"`
			} `json:"auth"`
		} `json:"security"`
	}
	raw, err := p.opts.ReadFile(filepath.Join(home(env, cli.Variable(env, "HOME")), "settings.json"))
	if err != nil || json.Unmarshal(raw, &settings) != nil {
		return ""
	}
	return settings.Security.Auth.Selected
}

// home returns the directory of Gemini's data. owner is the home directory of the user.
func home(env []string, owner string) string {
	return filepath.Join(cmp.Or(cli.Variable(env, "GEMINI_CLI_HOME"), owner), ".gemini")
}

func (p *Provider) stateDir() string {
	return cmp.Or(p.opts.StateDir, filepath.Join(os.TempDir(), fmt.Sprintf("ductor-gemini-%d", os.Getuid())))
}

// Auth implements cli.Provider. It looks for a key in the environment, for the credential file, and for a log-in method
// in the user's settings.
func (p *Provider) Auth(ctx context.Context) cli.Auth {
	env := p.env(cli.Request{})
	return turn.Account{
		Agent: Agent, Env: env, Install: "Install the Gemini CLI, or set agents.gemini.path", Fix: loginFix,
		Keys: []string{"GEMINI_API_KEY"}, Else: func(context.Context) string { return p.method(env) },
	}.Auth(ctx, p.opts.ProviderOptions)
}

var _ cli.LoginProvider = (*Provider)(nil)

// Logins implements cli.LoginProvider. A log-in with an account needs a terminal, because Gemini opens a browser on its
// own machine.
func (*Provider) Logins() []cli.Login {
	return []cli.Login{
		{Kind: cli.LoginByCommand, Command: "gemini"}, {Kind: cli.LoginByVariable, Variable: "GEMINI_API_KEY"},
	}
}

// LogIn implements cli.LoginProvider.
func (*Provider) LogIn(context.Context, string, func(cli.DeviceCode)) error {
	return errors.ErrUnsupported
}

// method returns how Gemini is logged in without an API key, or "" if it is not.
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
	case "", "oauth-personal", "gemini-api-key": // no credentials for these methods were found
		return ""
	default:
		return "Gemini's own settings (" + chosen + ")"
	}
}
