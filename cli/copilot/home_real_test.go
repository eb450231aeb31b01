package copilot

import (
	"path/filepath"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// A session with a home of its own gets only the log-in from the owner's home.
func TestRealHomes(t *testing.T) {
	realagent.LongOnly(t)
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			p, work, api := real(t)
			owner := filepath.Join(filepath.Dir(work), "home")
			p.opts.OwnerHome = owner
			marks := t.TempDir()
			mark := func(name string) string { return filepath.Join(marks, name) }
			clitest.Owned(t, owner, map[string]string{
				".copilot/mcp-config.json":         `{"mcpServers": {"canary": {"type": "local", "command": "touch", "args": ["` + mark("server") + `"], "tools": ["*"]}}}`,
				".copilot/copilot-instructions.md": "The word is canarymemory.",
				".copilot/skills/tell/SKILL.md":    "---\nname: tell\ndescription: tells canaryskill\n---\nhi",
				"AGENTS.md":                        "The word of home is canaryhome.",
				"project/AGENTS.md":                "The project's word is canaryproject.",
			})
			words := []string{"canarymemory"}
			if mode == cli.OneShot { // its server lists skills only on request
				words = append(words, "canaryskill")
			}
			clitest.OwnHomes(t, clitest.Isolated{
				Provider: p, Mode: mode, Owner: owner, Dir: filepath.Join(owner, "project"), Seeds: HomeSeeds(owner, nil),
				Words: words, Kept: []string{"canaryproject"}, Programs: []string{mark("server")},
				Asked: api.Asked,
			})
		})
	}
}
