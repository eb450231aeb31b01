package copilot

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
	owners := []string{"HOME=/home/me", "PATH=/bin", "XDG_CONFIG_HOME=/home/me/.config", "COPILOT_HOME=/home/me/.c", "COPILOT_SKILLS_DIRS=/home/me/skills"}
	p := New(Options{Env: func() []string { return owners }, AllowEnv: []string{"HOME", "COPILOT_HOME", "XDG_*"}, OwnerHome: "/home/other"})
	shared := p.environment(cli.Request{})
	for _, entry := range owners {
		if !slices.Contains(shared, entry) {
			t.Errorf("in the owner's home %s is not there: %q", entry, shared)
		}
	}
	req := cli.Request{Home: "/homes/s", Env: map[string]string{"HOME": "/home/me", "EXTRA": "1"}}
	own := p.environment(req)
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
		".copilot/config.json": "// User settings belong in settings.json.\n" +
			`{"lastLoggedInUser": {"login": "me"}, "copilotTokens": {"me": "token"}, "installedPlugins": ["canary"], "trustedFolders": ["canary"]}`,
		".copilot/mcp-config.json": `{"mcpServers": {"canary": {}}}`, ".copilot/copilot-instructions.md": "canary",
	})
	got := clitest.Seeded(t, HomeSeeds(owner, nil))
	config := got[".copilot/config.json"]
	if len(got) != 1 || !strings.Contains(config, `"login": "me"`) || !strings.Contains(config, `"token"`) || strings.Contains(config, "canary") {
		t.Errorf("a home has %q", got)
	}
	if got := clitest.Seeded(t, HomeSeeds("/nowhere", []string{"COPILOT_HOME=" + filepath.Join(owner, ".copilot")})); got[".copilot/config.json"] != config {
		t.Errorf("with COPILOT_HOME a home has %q", got)
	}
}

// All homes share one unpacked Copilot, unless it is said where that is.
func TestPackagesAreShared(t *testing.T) {
	for env, want := range map[string]string{
		"":                          "/home/me/.cache/copilot",
		"XDG_CACHE_HOME=/cache":     "/cache/copilot",
		"COPILOT_PKG_CACHE_HOME=/p": "/p",
	} {
		p := New(Options{Env: func() []string { return []string{env} }, OwnerHome: "/home/me"})
		if got := cli.Variable(p.environment(cli.Request{Home: "/h"}), packageVar); got != want {
			t.Errorf("with %q it is unpacked in %q", env, got)
		}
	}
}
