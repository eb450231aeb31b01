package codex

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
	owners := []string{"HOME=/home/me", "PATH=/bin", "XDG_CONFIG_HOME=/home/me/.config", "CODEX_HOME=/home/me/.c"}
	p := New(Options{Env: func() []string { return owners }, AllowEnv: []string{"HOME", "CODEX_HOME", "XDG_*"}})
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
		".codex/auth.json": "log-in", ".codex/.env": "OPENAI_API_KEY=k\nEVIL=1\n", ".codex/AGENTS.md": "memory",
		".codex/config.toml": `
model = "gpt-5.5"
model_provider = "mine"
notify = ["canary"]
[model_providers.mine]
base_url = "http://gateway"
[mcp_servers.canary]
command = "canary"
[projects."/"]
trust_level = "trusted"
`,
	})
	got := clitest.Seeded(t, HomeSeeds(owner, nil))
	config := got[".codex/config.toml"]
	if len(got) != 3 || got[".codex/auth.json"] != "log-in" || got[".codex/.env"] != "OPENAI_API_KEY=k\n" {
		t.Errorf("a home has %q", got)
	}
	for _, part := range []string{"model = 'gpt-5.5'", "base_url = 'http://gateway'", "check_for_update_on_startup = false"} {
		if !strings.Contains(config, part) {
			t.Errorf("no %s in %s", part, config)
		}
	}
	if strings.Contains(config, "canary") || strings.Contains(config, "trust") {
		t.Errorf("the owner's: %s", config)
	}
	if got := clitest.Seeded(t, HomeSeeds("/nowhere", []string{"CODEX_HOME=" + filepath.Join(owner, ".codex")})); got[".codex/auth.json"] != "log-in" {
		t.Errorf("with CODEX_HOME a home has %q", got)
	}
	broken := clitest.Seeded(t, HomeSeeds(t.TempDir(), nil))
	if len(broken) != 1 || !strings.Contains(broken[".codex/config.toml"], "analytics") {
		t.Errorf("of an owner without Codex a home has %q", broken)
	}
}
