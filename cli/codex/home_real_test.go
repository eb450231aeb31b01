package codex

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
)

// A session with a home of its own gets the way to the model from the owner's home, and nothing else.
func TestRealHomes(t *testing.T) {
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			p, work, api := real(t)
			owner := filepath.Join(filepath.Dir(work), "home")
			marks := t.TempDir()
			mark := func(name string) string { return filepath.Join(marks, name) }
			config, err := os.ReadFile(filepath.Join(owner, ".codex/config.toml"))
			if err != nil {
				t.Fatal(err)
			}
			clitest.Owned(t, owner, map[string]string{
				".codex/config.toml": `notify = ["touch", "` + mark("notify") + `"]` + "\n" + string(config) +
					"\n[mcp_servers.canary]\ncommand = \"touch\"\nargs = [\"" + mark("server") + "\"]\n",
				".codex/AGENTS.md":            "The word is canarymemory.",
				".codex/skills/tell/SKILL.md": "---\nname: tell\ndescription: tells canaryskill\n---\nhi",
				"AGENTS.md":                   "The word of home is canaryhome.",
				"project/AGENTS.md":           "The project's word is canaryproject.",
			})
			clitest.OwnHomes(t, clitest.Isolated{
				Provider: p, Mode: mode, Owner: owner, Dir: filepath.Join(owner, "project"), Seeds: HomeSeeds(owner, p.opts.Env()),
				Words: []string{"canarymemory", "canaryskill"}, Kept: []string{"canaryproject"}, Programs: []string{mark("server"), mark("notify")},
				Asked: func() string {
					var b strings.Builder
					for _, r := range api.Prompts() {
						b.Write(r.Body)
					}
					return b.String()
				},
			})
		})
	}
}
