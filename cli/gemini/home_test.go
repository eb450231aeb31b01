package gemini

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

// A home of its own is where everything leads, whatever the owner's environment and configuration say.
func TestOwnHomeEnvironment(t *testing.T) {
	owners := []string{"HOME=/home/me", "PATH=/bin", "XDG_CONFIG_HOME=/home/me/.config", "GEMINI_CLI_HOME=/home/me/.c"}
	p := New(Options{Env: func() []string { return owners }, AllowEnv: []string{"HOME", "GEMINI_CLI_HOME", "XDG_*"}})
	shared := p.env(cli.Request{})
	for _, entry := range owners {
		if !slices.Contains(shared, entry) {
			t.Errorf("in the owner's home %s is not there: %q", entry, shared)
		}
	}
	req := cli.Request{Home: "/homes/s", Env: map[string]string{"HOME": "/home/me", "EXTRA": "1"}}
	own := p.env(req)
	if cli.Variable(own, "HOME") != "/homes/s" || cli.Variable(own, "EXTRA") != "1" || !slices.IsSorted(own) {
		t.Errorf("in a home of its own: %q", own)
	}
	for _, entry := range own {
		if strings.Contains(entry, "/home/me") {
			t.Errorf("%s leads back", entry)
		}
	}
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
