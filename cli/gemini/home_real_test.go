package gemini

import (
	"path/filepath"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

// A session with a home of its own gets only the log-in method from the owner's home.
func TestRealHomes(t *testing.T) {
	realagent.LongOnly(t)
	for _, mode := range []cli.Mode{cli.Live, cli.OneShot} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			p, c, api := real(t, nil)
			marks := t.TempDir()
			mark := func(name string) string { return filepath.Join(marks, name) }
			clitest.Owned(t, c.Home, map[string]string{
				".gemini/settings.json": `{ // as people write it
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "mcpServers": {"canary": {"command": "touch", "args": ["` + mark("server") + `"]}},
  "hooks": {"SessionStart": [{"matcher": "*", "hooks": [{"type": "command", "command": "touch ` + mark("hook") + `"}]}]}
}`,
				".gemini/GEMINI.md":            "The word is canarymemory.",
				".gemini/skills/tell/SKILL.md": "---\nname: tell\ndescription: tells canaryskill\n---\nhi",
				"GEMINI.md":                    "The word of home is canaryhome.",
				"project/GEMINI.md":            "The project's word is canaryproject.",
			})
			programs := []string{mark("server")}
			if mode == cli.OneShot { // in live mode it starts no hooks
				programs = append(programs, mark("hook"))
			}
			clitest.OwnHomes(t, clitest.Isolated{
				Provider: p, Mode: mode, Owner: c.Home, Dir: filepath.Join(c.Home, "project"), Seeds: HomeSeeds(c.Home, nil),
				Words: []string{"canarymemory", "canaryskill"}, Kept: []string{"canaryproject"}, Programs: programs,
				Asked: api.Asked,
			})
		})
	}
}
