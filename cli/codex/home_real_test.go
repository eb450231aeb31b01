package codex

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/host"
	"ductor/internal/realagent"
)

// A session with a home of its own gets only the access to the model from the owner's home.
func TestRealHomes(t *testing.T) {
	for _, mode := range realagent.Some(cli.Live, cli.OneShot) {
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
				Asked: api.Asked,
			})
		})
	}
}

// Codex renews the file that the link in a home leads to, and leaves the link.
func TestRealLogInFollowsTheLink(t *testing.T) {
	p, work, _ := real(t)
	owner := filepath.Join(filepath.Dir(work), "home")
	clitest.Owned(t, owner, map[string]string{".codex/auth.json": `{"OPENAI_API_KEY": "old"}`})
	homes, err := host.OpenHomes(host.HomesOptions{Dir: t.TempDir(), Seeds: HomeSeeds(owner, nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer homes.Close()
	home, err := homes.Home(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	login := exec.CommandContext(t.Context(), p.opts.Path, "login", "--with-api-key")
	login.Env, login.Stdin = p.env(cli.Request{Home: home}), strings.NewReader("sk-renewed\n")
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if raw, err := os.ReadFile(filepath.Join(owner, ".codex/auth.json")); err != nil || !strings.Contains(string(raw), "sk-renewed") {
		t.Errorf("the owner's log-in is %s (%v)", raw, err)
	}
	if to, err := os.Readlink(filepath.Join(home, ".codex/auth.json")); err != nil || to != filepath.Join(owner, ".codex/auth.json") {
		t.Errorf("the home has no link any more, but %q (%v)", to, err)
	}
}
