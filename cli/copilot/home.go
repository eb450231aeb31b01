package copilot

import (
	"encoding/json"
	"path/filepath"

	"ductor/cli"
)

// homeVars lead Copilot to where it keeps what it knows, and to instructions and skills.
func homeVars() []string {
	return []string{"COPILOT_HOME", "COPILOT_CACHE_HOME", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS", "COPILOT_SKILLS_DIRS"}
}

const packageVar = "COPILOT_PKG_CACHE_HOME"

// packages are where Copilot unpacks itself, 235 MB: once for all homes.
func (p *Provider) packages() map[string]string {
	env := p.opts.Env()
	if p.opts.OwnerHome == "" || cli.Variable(env, packageVar) != "" {
		return nil
	}
	cache := cli.Variable(env, "XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(p.opts.OwnerHome, ".cache")
	}
	return map[string]string{packageVar: filepath.Join(cache, "copilot")}
}

// HomeSeeds are what Copilot finds in a session's own home: the owner's log-in. owner is the owner's home; env, the
// owner's environment, may say where Copilot's own is instead.
//
// Copilot 1.0 renames a new config.json over the old one at every start, so a link would not last. The token in there
// is not renewed; a copy is as good. A log-in in the keyring of the desktop is found from every home.
func HomeSeeds(owner string, env []string) []cli.HomeSeed {
	dir := cli.Variable(env, "COPILOT_HOME")
	if dir == "" {
		dir = filepath.Join(owner, ".copilot")
	}
	return []cli.HomeSeed{{From: filepath.Join(dir, "config.json"), To: ".copilot/config.json", Pick: ownConfig}}
}

// ownConfig keeps of a configuration who is logged in: no plugins, no trust in directories.
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
