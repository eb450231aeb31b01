package claude

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/host"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
)

// touch returns a command, as JSON or TOML, that creates a file and ends.
func touch(file string) string { return `"command": "touch", "args": [` + strconv.Quote(file) + `]` }

// A session with a home of its own gets nothing of the owner's, in whatever directory below the owner's home it works.
func TestRealHomes(t *testing.T) {
	type variant struct {
		name       string
		mode       cli.Mode
		repository bool
	}
	for _, v := range realagent.Some(variant{"live in no repository", cli.Live, false}, variant{"one-shot in a repository", cli.OneShot, true}) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			p, c, api := real(t, nil)
			p.opts.OwnerHome = c.Home
			marks := t.TempDir()
			mark := func(name string) string { return filepath.Join(marks, name) }
			clitest.Owned(t, c.Home, map[string]string{
				"CLAUDE.md":                      "The first word is canaryhome.",
				".claude/CLAUDE.md":              "The second word is canarymemory.",
				".claude/skills/tell/SKILL.md":   "---\nname: tell\ndescription: tells canaryskill\n---\nhi",
				".claude/settings.json":          `{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch ` + mark("hook") + `"}]}]}}`,
				".claude.json":                   `{"hasCompletedOnboarding": true, "mcpServers": {"canary": {` + touch(mark("server")) + `}}}`,
				".mcp.json":                      `{"mcpServers": {"above": {` + touch(mark("above")) + `}}}`,
				"project/CLAUDE.md":              "The project's word is canaryproject.",
				"project/.claude/commands/go.md": "go",
			})
			in := clitest.Isolated{
				Provider: p, Mode: v.mode, Owner: c.Home, Dir: filepath.Join(c.Home, "project"), Seeds: HomeSeeds(c.Home, nil),
				Words:    []string{"canaryhome", "canarymemory", "canaryskill"},
				Programs: []string{mark("hook"), mark("server"), mark("above")},
			}
			if v.repository {
				clitest.Owned(t, c.Home, map[string]string{"project/.git/HEAD": "ref: refs/heads/main\n"})
				in.Words, in.Kept = []string{"canaryhome", "canarymemory"}, []string{"canaryproject"}
			}
			in.Asked = api.Asked
			clitest.OwnHomes(t, in)
		})
	}
}

// A session with a home of its own is logged in like the owner, through the owner's own file, which Claude replaces.
func TestRealHomesShareTheLogIn(t *testing.T) {
	realagent.LongOnly(t)
	const token = "sk-ant-oat01-simulated"
	p, c, _ := real(t, nil)
	api := modelapi.New(modelapi.Options{Key: token})
	must(t, api.Start())
	defer api.Close(context.Background())
	delete(c.Vars, "ANTHROPIC_API_KEY")
	c.Vars["ANTHROPIC_BASE_URL"] = api.URL()
	p.opts.OwnerHome = c.Home
	clitest.Owned(t, c.Home, map[string]string{
		".claude/.credentials.json": `{"claudeAiOauth": {"accessToken": "` + token + `", "refreshToken": "r", "expiresAt": 4102444800000, "scopes": ["user:inference"], "subscriptionType": "max"}}`,
	})
	homes, err := host.OpenHomes(host.HomesOptions{Dir: t.TempDir(), Seeds: HomeSeeds(c.Home, nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer homes.Close()
	home, err := homes.Home(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	req := cli.Request{Dir: c.Work, Home: home, Prompt: `[[text "in"]]`}
	if r, _ := clitest.Play(t.Context(), clitest.Open(t, p, cli.OneShot, req), req); r.Text != "in" {
		t.Errorf("answered %+v after %d requests", r, len(api.Requests()))
	}
	if got := cli.Variable(p.environment(req), loginDirVar); got != filepath.Join(c.Home, ".claude") || strings.HasPrefix(got, home) {
		t.Errorf("log-ins are kept in %q", got)
	}
}
