package gemini

import (
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

func TestOwnHomeEnvironment(t *testing.T) {
	clitest.OwnHomeEnvironment(t, []string{"GEMINI_CLI_HOME"}, func(owner, allowed []string, req cli.Request) []string {
		return New(Options{ProviderOptions: cli.ProviderOptions{Env: func() []string { return owner }, AllowEnv: allowed}}).env(req)
	})
}

func TestHomeSeeds(t *testing.T) {
	owner := t.TempDir()
	clitest.Owned(t, owner, map[string]string{
		".gemini/oauth_creds.json": "log-in", ".gemini/google_accounts.json": "me", ".gemini/.env": "GEMINI_API_KEY=k\nEVIL=1\n",
		".gemini/GEMINI.md": "memory", ".gemini/settings.json": `{ // mine
			"security": {"auth": {"selectedType": "oauth-personal"}, "folderTrust": {"enabled": true}},
			"mcpServers": {"canary": {}}, "hooks": {"canary": []}, "context": {"fileName": "canary"}}`,
	})
	got := clitest.Seeded(t, HomeSeeds(owner, nil))
	settings := got[".gemini/settings.json"]
	if len(got) != 4 || got[".gemini/oauth_creds.json"] != "log-in" || got[".gemini/google_accounts.json"] != "me" || got[".gemini/.env"] != "GEMINI_API_KEY=k\n" {
		t.Errorf("a home has %q", got)
	}
	if !strings.Contains(settings, `"selectedType": "oauth-personal"`) || strings.Contains(settings, "canary") || strings.Contains(settings, "folderTrust") {
		t.Errorf("settings are %s", settings)
	}
	if got := clitest.Seeded(t, HomeSeeds("/nowhere", []string{"GEMINI_CLI_HOME=" + owner})); got[".gemini/oauth_creds.json"] != "log-in" {
		t.Errorf("with GEMINI_CLI_HOME a home has %q", got)
	}
	clitest.Owned(t, owner, map[string]string{".gemini/settings.json": `{"selectedAuthType": "gemini-api-key"}`})
	if old := clitest.Seeded(t, HomeSeeds(filepath.Join(owner, "."), nil))[".gemini/settings.json"]; !strings.Contains(old, `"selectedType": "gemini-api-key"`) {
		t.Errorf("of old settings become %s", old)
	}
}
