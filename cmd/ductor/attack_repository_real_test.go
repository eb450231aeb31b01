package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// repository is a directory whose files name programs. Each program leaves a file in ran.
type repository struct {
	*hooked
	ran     string
	trapped []string // names of files in ran that the agent's programs leave
	dir     string
}

// A repository brings hooks and MCP servers along. No agent runs them before its user has seen and allowed them, none that
// changed since, and none in a run that a webhook starts.
func TestTheRealAgentsInARepositoryWithPrograms(t *testing.T) {
	for agent, trapped := range realagent.SomeOf(map[string][]string{
		"claude": {"claude-hook", "claude-mcp"}, "gemini": {"gemini-mcp"}, "copilot": {"copilot-hook", "claude-hook"}, "codex": nil,
	}) {
		t.Run(agent, func(t *testing.T) {
			addr := unusedAddr(t)
			town, _ := realSurroundings(t, agent, func(c *config.Config) {
				c.Permissions.Mode = "ask"
				c.Webhooks.Listen = addr
				c.Webhooks.Hooks = map[string]config.Hook{
					"deploy": unattended(`[[start]] [[text "the run ended"]]`, "own", config.Rights{}),
				}
			})
			w := &hooked{besieged: &besieged{town: town, addr: addr, client: &http.Client{Timeout: patience}}}
			t.Cleanup(w.client.CloseIdleConnections)
			r := &repository{hooked: w, ran: t.TempDir(), trapped: trapped, dir: town.cfg.Projects.DefaultDir}
			r.plant("1")
			town.start()
			r.visit()
		})
	}
}

// plant writes programs of every agent, whose files in ran end with a suffix.
func (r *repository) plant(suffix string) {
	r.t.Helper()
	touch := func(name string) string { return "touch " + filepath.Join(r.ran, name+suffix) }
	mcp := func(name string) string {
		return `{"mcpServers": {"trap": {"command": "sh", "args": ["-c", "` + touch(name) + `"]}}}`
	}
	for name, text := range map[string]string{
		".git/HEAD":               "ref: refs/heads/main\n",
		".mcp.json":               mcp("claude-mcp"),
		".claude/settings.json":   `{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "` + touch("claude-hook") + `"}]}]}}`,
		".gemini/settings.json":   mcp("gemini-mcp"),
		".github/hooks/trap.json": `{"version": 1, "hooks": {"userPromptSubmitted": [{"type": "command", "bash": "` + touch("copilot-hook") + `"}]}}`,
		".codex/config.toml":      "[mcp_servers.trap]\ncommand = \"sh\"\nargs = [\"-c\", \"" + touch("codex-mcp") + "\"]\n",
		".codex/hooks.json":       `{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "` + touch("codex-hook") + `"}]}]}}`,
	} {
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *repository) visit() {
	r.t.Helper()
	r.say(`[[start]] [[text "one"]]`)
	if r.trapped == nil {
		r.await("one")
		r.nothingRan()
		return
	}
	card := r.awaitProject("1")
	for _, name := range r.trapped {
		if !strings.Contains(card.Text, name+"1") {
			r.t.Errorf("the card does not say what runs %s:\n%s", name, card.Text)
		}
	}
	r.pressOn(card, "Without them")
	r.await("one")
	r.nothingRan()
	r.awaitAfter(r.say(`[[start]] [[text "two"]]`), "two") // and is not asked again
	r.nothingRan()

	r.plant("2")
	r.say(`[[start]] [[text "three"]]`)
	changed := r.awaitProject("2")
	r.pressOn(changed, "📄 Full text")
	r.pressOn(changed, "✅ Use them")
	r.await("three")
	r.allRan("2")
	r.say(`[[start]] [[text "four"]]`)
	r.await("four")

	r.plant("3")
	r.hook("deploy")
	r.await("the run ended")
	for _, name := range r.names() {
		if strings.HasSuffix(name, "1") || strings.HasSuffix(name, "3") {
			r.t.Errorf("%s ran", name)
		}
	}
}

// awaitProject waits for the question about programs of a generation.
func (r *repository) awaitProject(suffix string) telegram.Message {
	r.t.Helper()
	return r.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("Without them") && strings.Contains(m.Text, r.trapped[0]+suffix)
	})
}

func (r *repository) names() []string {
	r.t.Helper()
	entries, err := os.ReadDir(r.ran)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (r *repository) nothingRan() {
	r.t.Helper()
	if names := r.names(); len(names) > 0 {
		r.t.Fatalf("programs of the repository ran: %q", names)
	}
}

func (r *repository) allRan(suffix string) {
	r.t.Helper()
	for _, name := range r.trapped {
		awaitFile(r.t, filepath.Join(r.ran, name+suffix))
	}
}
