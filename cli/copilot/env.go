package copilot

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"ductor/cli"
	"ductor/cli/stored"
)

// EnvKeys returns patterns of the environment variables that ductor passes to Copilot, but not to other agents.
func EnvKeys() []string { return []string{"COPILOT_*", "GH_*", "GITHUB_*"} }

// ownEnv returns the environment variables that ductor itself sets.
func (p *Provider) ownEnv() map[string]string {
	env := map[string]string{
		"COPILOT_AUTO_UPDATE": "false", // an update could break a running Copilot
		"COPILOT_ALLOW_ALL":   "",      // ductor's permission mode decides, and not this variable
	}
	maps.Copy(env, p.packages())
	return env
}

// environment returns the complete environment of a process that serves req.
func (p *Provider) environment(req cli.Request) []string {
	return cli.AtHome(p.opts.ChildEnv(req, EnvKeys(), p.ownEnv()), req.Home, homeVars()...)
}

// ownProvider returns the model provider that the COPILOT_PROVIDER_* variables configure, or nil if they configure
// none. The live server ignores these variables, so ductor passes the provider to each session. The schema is
// ProviderConfig in api.schema.json.
func ownProvider(env []string) map[string]any {
	url := cli.Variable(env, "COPILOT_PROVIDER_BASE_URL")
	if url == "" {
		return nil
	}
	provider := map[string]any{"baseUrl": url, "type": cmp.Or(cli.Variable(env, "COPILOT_PROVIDER_TYPE"), "openai")}
	for name, variable := range map[string]string{
		"apiKey": "API_KEY", "apiKeyCommand": "API_KEY_COMMAND", "bearerToken": "BEARER_TOKEN", "wireApi": "WIRE_API",
		"transport": "TRANSPORT", "modelId": "MODEL_ID", "wireModel": "WIRE_MODEL",
	} {
		if value := cli.Variable(env, "COPILOT_PROVIDER_"+variable); value != "" {
			provider[name] = value
		}
	}
	if version := cli.Variable(env, "COPILOT_PROVIDER_AZURE_API_VERSION"); version != "" {
		provider["azure"] = map[string]any{"apiVersion": version}
	}
	for name, variable := range map[string]string{"maxPromptTokens": "MAX_PROMPT_TOKENS", "maxOutputTokens": "MAX_OUTPUT_TOKENS"} {
		if n, err := strconv.Atoi(cli.Variable(env, "COPILOT_PROVIDER_"+variable)); err == nil {
			provider[name] = n
		}
	}
	if headers := providerHeaders(cli.Variable(env, "COPILOT_PROVIDER_HEADERS")); len(headers) > 0 {
		provider["headers"] = headers
	}
	return provider
}

// providerHeaders parses HTTP headers: lines of the form "Name: Value".
func providerHeaders(text string) map[string]string {
	headers := map[string]string{}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, `\n`, "\n"), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) != "" {
			headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return headers
}

// modelOf returns the initial model of a session. If it is empty, Copilot chooses the model.
func modelOf(req cli.Request, env []string) cli.ModelID {
	return cmp.Or(req.Model, cli.ModelID(cli.Variable(env, "COPILOT_MODEL")), cli.ModelID(cli.Variable(env, "COPILOT_PROVIDER_MODEL_ID")))
}

// homeVars returns the environment variables that set the locations of Copilot's data, instructions and skills.
func homeVars() []string {
	return []string{"COPILOT_HOME", "COPILOT_CACHE_HOME", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS", "COPILOT_SKILLS_DIRS"}
}

// LoginVars returns the environment variables, besides COPILOT_HOME, that contain a log-in or set the location of a
// part of Copilot's state.
func LoginVars() []string {
	return []string{
		"COPILOT_CACHE_HOME", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_*",
	}
}

const packageVar = "COPILOT_PKG_CACHE_HOME"

// packages returns the environment variable that sets where Copilot unpacks itself. The sessions' own home directories
// share this place, because a copy takes 235 MB.
func (p *Provider) packages() map[string]string {
	env := p.opts.Env()
	if p.opts.OwnerHome == "" || cli.Variable(env, packageVar) != "" {
		return nil
	}
	cache := cmp.Or(cli.Variable(env, "XDG_CACHE_HOME"), filepath.Join(p.opts.OwnerHome, ".cache"))
	return map[string]string{packageVar: filepath.Join(cache, "copilot")}
}

// HomeSeeds returns the files that a session's own home directory contains at first: the log-in of the user who runs
// ductor. owner is that user's home directory. env is the user's environment, which may set another location of
// Copilot's data.
//
// The log-in is a copy. A link would not last, because Copilot 1.0 renames a new config.json over the old one at every
// start. A copy suffices, because Copilot does not renew the token. A log-in in the desktop's keyring works with every
// home directory.
func HomeSeeds(owner string, env []string) []cli.HomeSeed {
	return []cli.HomeSeed{{From: filepath.Join(configDir(env, owner), "config.json"), To: ".copilot/config.json", Pick: ownConfig}}
}

// ownConfig reduces a config.json to the log-in. It removes plugins and trusted directories.
func ownConfig(owner []byte) ([]byte, error) {
	var all map[string]json.RawMessage
	own := map[string]json.RawMessage{"banner": json.RawMessage(`"never"`)}
	if json.Unmarshal(cli.PlainJSON(owner), &all) != nil {
		all = nil
	}
	for _, name := range []string{
		"lastLoggedInUser", "loggedInUsers", "copilotTokens", "authTokens", "storeTokenPlaintext",
		"last_logged_in_user", "logged_in_users", "copilot_tokens", "store_token_plaintext",
	} {
		if value, ok := all[name]; ok {
			own[name] = value
		}
	}
	return json.MarshalIndent(own, "", "  ")
}

var _ cli.SessionKeeper = (*Provider)(nil)

// StoredSessions implements cli.SessionKeeper.
func (p *Provider) StoredSessions(ctx context.Context, dir string) ([]cli.StoredSession, error) {
	return stored.Source{
		Agent: Agent, Launcher: p.opts.Launcher, Env: p.environment(cli.Request{}), Parse: storedLine,
		Files: stored.Files{
			Homes: []string{"COPILOT_HOME", "HOME/.copilot"},
			Globs: []string{"session-state/*/events.jsonl"}, Has: stored.HasDir(dir),
		},
	}.List(ctx, dir)
}

// ResumeCommand implements cli.SessionKeeper.
func (p *Provider) ResumeCommand(id cli.AgentSessionID) []string {
	return []string{p.opts.Path, "--resume=" + string(id)}
}

// storedLine parses a line of the file in which Copilot stores a session.
func storedLine(line []byte) stored.Line {
	var l struct {
		Type string `json:"type"`
		Data struct {
			ID      string `json:"sessionId"`
			Context struct {
				Dir string `json:"cwd"`
			} `json:"context"`
			Content json.RawMessage `json:"content"`
		} `json:"data"`
	}
	if json.Unmarshal(line, &l) != nil {
		return stored.Line{}
	}
	out := stored.Line{}
	switch l.Type {
	case "session.start":
		out.ID, out.Dir = cli.AgentSessionID(l.Data.ID), l.Data.Context.Dir
	case "user.message":
		_ = json.Unmarshal(l.Data.Content, &out.Prompt) // a prompt that is not text stays empty
	}
	return out
}
