package copilot

import (
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

func TestOwnHomeEnvironment(t *testing.T) {
	clitest.OwnHomeEnvironment(t, []string{"COPILOT_HOME", "COPILOT_SKILLS_DIRS"}, func(owner, allowed []string, req cli.Request) []string {
		return New(Options{ProviderOptions: cli.ProviderOptions{Env: func() []string { return owner }, AllowEnv: allowed, OwnerHome: "/home/other"}}).environment(req)
	})
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

// All homes share one unpacked Copilot, unless the environment defines its place.
func TestPackagesAreShared(t *testing.T) {
	for env, want := range map[string]string{
		"":                          "/home/me/.cache/copilot",
		"XDG_CACHE_HOME=/cache":     "/cache/copilot",
		"COPILOT_PKG_CACHE_HOME=/p": "/p",
	} {
		p := New(Options{ProviderOptions: cli.ProviderOptions{Env: func() []string { return []string{env} }, OwnerHome: "/home/me"}})
		if got := cli.Variable(p.environment(cli.Request{Home: "/h"}), packageVar); got != want {
			t.Errorf("with %q it is unpacked in %q", env, got)
		}
	}
}
