package gemini

import (
	"encoding/json"
	"path/filepath"

	"ductor/cli"
)

// homeVars lead Gemini to where it keeps what it knows.
func homeVars() []string { return []string{"GEMINI_CLI_HOME"} }

// HomeSeeds are what Gemini finds in a session's own home: the owner's log-in and the way of it. owner is the owner's
// home; env, the owner's environment, may say where Gemini's own is instead.
//
// Gemini 0.61 writes its log-in over what is there, so that links stay links.
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

// ownSettings keep of the owner's how to log in: no MCP servers, no hooks, no extensions, no names of memory files.
func ownSettings(owner []byte) ([]byte, error) {
	var theirs struct {
		Security struct {
			Auth json.RawMessage `json:"auth"`
		} `json:"security"`
		Selected string `json:"selectedAuthType"` // as of versions before 0.5
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
