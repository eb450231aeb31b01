package codex

import (
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

func TestOwnHomeEnvironment(t *testing.T) {
	clitest.OwnHomeEnvironment(t, []string{"CODEX_HOME"}, func(owner, allowed []string, req cli.Request) []string {
		return New(Options{ProviderOptions: cli.ProviderOptions{Env: func() []string { return owner }, AllowEnv: allowed}}).env(req)
	})
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
