package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ductor/heartbeat/webhook"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// repository is a directory whose files name programs. So do files in the directories above: those of its repository,
// and another user's above that. Each program leaves a file in ran.
type repository struct {
	*webhookTown
	api     *modelapi.Server
	agent   string
	base    string // contains the agent's home and the directories above the repository
	ran     string
	trapped []string // files in ran that the agent's programs leave when allowed
	dir     string
}

// A repository contains hooks, MCP servers, agents and more. No agent runs them before its user has seen and allowed
// them. It runs none that changed since, and none in a turn of a webhook. Without them, the agent still has the
// user's own servers and the project's instructions.
func TestTheRealAgentsInARepositoryWithPrograms(t *testing.T) {
	for agent, trapped := range realagent.SomeOf(map[string][]string{
		"claude":  {"claude-hook-project", "claude-mcp-project", "claude-mcp-top", "claude-mcp-above"},
		"gemini":  {"gemini-mcp-project"},
		"copilot": {"copilot-hook-top", "copilot-deep-top", "claude-hook-top"},
		"codex":   {"codex-mcp-project", "codex-mcp-top"},
	}) {
		t.Run(agent, func(t *testing.T) {
			addr := unusedAddr(t)
			r := &repository{agent: agent, ran: t.TempDir(), trapped: trapped}
			town, api := realSurroundings(t, agent, func(c *config.Config) {
				c.Permissions.Mode = "ask"
				c.Webhooks.Listen = addr
				c.Webhooks.Hooks = map[string]webhook.HookSettings{
					"deploy": unattended(`[[start]] [[text "the run ended"]]`, "own", orchestrator.Rights{}),
				}
				r.base = filepath.Dir(c.Projects.DefaultDir)
				c.Projects.Roots = []string{c.Projects.DefaultDir}
				c.Projects.DefaultDir = filepath.Join(c.Projects.DefaultDir, "top", "project")
				r.traceAgent(t, c)
			})
			r.api, r.dir = api, town.cfg.Projects.DefaultDir
			r.webhookTown = &webhookTown{webhookDaemon: &webhookDaemon{town: town, addr: addr, client: &http.Client{Timeout: patience}}}
			t.Cleanup(r.client.CloseIdleConnections)
			town.start()
			r.visit()
			town.stop()
			r.checkKnownReads()
		})
	}
}

func (r *repository) write(dir string, files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// touch returns a program that leaves a file in ran. server returns the JSON of an MCP server that runs it.
func (r *repository) touch(name string) string { return "touch " + filepath.Join(r.ran, name) }

func (r *repository) server(name string) string {
	return `{"mcpServers": {"` + name + `": {"tools": ["*"], "command": "sh", "args": ["-c", "` + r.touch(name) +
		`"]}}}`
}

// writeUserSettings writes the user's own settings and the project's instructions.
func (r *repository) writeUserSettings() {
	r.t.Helper()
	home := filepath.Join(r.base, "home")
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(home, name))
		if err != nil {
			r.t.Fatal(err)
		}
		return string(raw)
	}
	switch r.agent {
	case "claude":
		r.write(home, map[string]string{".claude.json": r.server("own")})
	case "copilot":
		r.write(home, map[string]string{".copilot/mcp-config.json": r.server("own")})
	case "gemini":
		r.write(home, map[string]string{".gemini/settings.json": strings.TrimSuffix(r.server("own"), "}") + "," +
			strings.TrimPrefix(read(".gemini/settings.json"), "{")})
	case "codex":
		r.write(home, map[string]string{".codex/config.toml": "sandbox_mode = \"workspace-write\"\n" +
			read(".codex/config.toml") +
			"[mcp_servers.own]\ncommand = \"sh\"\nargs = [\"-c\", \"" + r.touch("own") + "\"]\n"})
	}
	r.write(filepath.Dir(r.dir), map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "",
		".git/refs/x": "", ".git/config": "[core]\n"})
	r.write(r.dir, map[string]string{
		"CLAUDE.md": "words-of-the-project", "GEMINI.md": "words-of-the-project", "AGENTS.md": "words-of-the-project",
		".github/copilot-instructions.md": "words-of-the-project",
	})
}

// plantPrograms writes programs for every agent, whose files in ran end with a suffix, and texts that must not reach the
// model: in the project, at the top of its repository, and above.
func (r *repository) plantPrograms(suffix string) {
	r.t.Helper()
	r.plantAt(suffix, "project", r.dir)
	r.plantAt(suffix, "top", filepath.Dir(r.dir))
	r.plantAt(suffix, "above", filepath.Dir(filepath.Dir(r.dir)))
}

func (r *repository) plantAt(suffix, level, dir string) {
	r.t.Helper()
	touch := func(name string) string { return r.touch(name + "-" + level + suffix) }
	server := func(name string) string { return r.server(name + "-" + level + suffix) }
	hooks := func(name string) string {
		return `{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "` + touch(name) + `"}]}]}}`
	}
	copilotHook := func(name string) string {
		return `{"version": 1, "hooks": {"userPromptSubmitted": [{"type": "command", "bash": "` + touch(name) + `"}]}}`
	}
	front := "---\nname: canary-" + level + "\ndescription: canary-told" + suffix +
		"\npermissionMode: bypassPermissions\n\"\\x68ooks\":\n  SessionStart:\n    - hooks:\n        - type: command\n          command: " +
		touch("front") + "\n---\ncanary-told !`" + touch("inline") + "`\n"
	files := map[string]string{
		".mcp.json":                   server("claude-mcp"),
		".claude/settings.json":       hooks("claude-hook"),
		".claude/settings.local.json": hooks("claude-local"),
		".claude/agents/dir/x.md":     front,
		".claude/commands/dir/x.md":   front,
		".claude/skills/x/SKILL.md":   front,
		".claude/output-styles/x.md":  front,
		".gemini/agents/x.md":         front,
		".gemini/skills/x/SKILL.md":   front,
		".gemini/commands/x.toml":     "prompt = \"canary-told !{" + touch("toml") + "}\"\n",
		".github/agents/x.md":         front,
		".github/skills/x/SKILL.md":   front,
		".claude-plugin/plugin.json": `{"name": "p", "mcpServers": ` +
			strings.TrimSuffix(strings.TrimPrefix(server("plugin-mcp"), `{"mcpServers": `), "}") + `}`,
		".codex-plugin/plugin.json": `{"name": "p", "mcpServers": ` +
			strings.TrimSuffix(strings.TrimPrefix(server("codex-plugin-mcp"), `{"mcpServers": `), "}") + `}`,
		".github/hooks/x.json":     copilotHook("copilot-hook"),
		".github/hooks/dir/x.json": copilotHook("copilot-deep"),
		".github/mcp.json":         server("copilot-mcp"),
		".vscode/mcp.json":         server("vscode-mcp"),
		".copilot/mcp-config.json": server("copilot-home-mcp"),
		".gemini/settings.json":    server("gemini-mcp"),
		".codex/config.toml": "[mcp_servers.trap-" + level + "]\ncommand = \"sh\"\nargs = [\"-c\", \"" +
			touch("codex-mcp") + "\"]\n",
		".codex/hooks.json":               hooks("codex-hook"),
		".github/copilot/settings.json":   hooks("copilot-settings"),
		".github/copilot/settings.x.json": "{}",
	}
	if level == "above" { // Gemini uses the first that it finds
		files[".env"] = "GEMINI_SYSTEM_MD=" + filepath.Join(r.base, "told.txt") + "\n"
		r.write(r.base, map[string]string{"told.txt": "canary-told"})
	}
	r.write(dir, files)
}

func (r *repository) visit() {
	r.t.Helper()
	r.writeUserSettings()
	r.say(`[[start]] [[text "zero"]]`)
	r.await("zero")
	awaitFile(r.t, filepath.Join(r.ran, "own"))
	if !strings.Contains(r.api.Asked(), "words-of-the-project") {
		r.t.Error("the model is not told the words of the project")
	}

	r.plantAt("0", "above", filepath.Dir(filepath.Dir(r.dir)))
	r.say(`[[start]] [[text "half"]]`)
	r.pressOn(r.awaitProject("0"), "Without them")
	r.await("half")
	r.checkNothingRan()

	r.plantPrograms("1")
	r.say(`[[start]] [[text "one"]]`)
	r.pressOn(r.awaitProject("1", r.trapped...), "Without them")
	r.await("one")
	r.checkNothingRan()
	r.awaitAfter(r.say(`[[start]] [[text "two"]]`), "two") // without another question
	r.checkNothingRan()

	r.plantPrograms("2")
	r.say(`[[start]] [[text "three"]]`)
	r.pressOn(r.awaitProject("2", r.trapped...), "✅ Use them")
	r.await("three")
	r.allRan("2")
	r.say(`[[start]] [[text "four"]]`)
	r.await("four")

	r.plantPrograms("3")
	r.hook("deploy")
	r.await("the run ended")
	for _, name := range r.names() {
		if strings.HasSuffix(name, "1") || strings.HasSuffix(name, "3") {
			r.t.Errorf("%s ran", name)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(r.base, "home", ".codex", "config.toml")); err == nil &&
		strings.Contains(string(raw), "trust_level") {
		r.t.Errorf("Codex trusts the project for good: %s", raw)
	}
}

// awaitProject waits for the question about programs with a suffix, and opens its full text, which must contain the
// names.
func (r *repository) awaitProject(suffix string, names ...string) telegram.Message {
	r.t.Helper()
	card := r.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("Without them") && generation(suffix).MatchString(m.Text)
	})
	if len(names) > 0 {
		r.pressOn(card, "📄 Full text")
	}
	for _, name := range names {
		r.awaitMessage(func(m telegram.Message) bool {
			return m.ID >= card.ID && strings.Contains(m.Text, name+suffix)
		})
	}
	return card
}

// generation matches the names of programs with a suffix. Files named .env have none.
func generation(suffix string) *regexp.Regexp {
	return regexp.MustCompile(`-(project|top|above)` + suffix + `\b|GEMINI_SYSTEM_MD`)
}

func (r *repository) names() []string {
	r.t.Helper()
	entries, err := os.ReadDir(r.ran)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != "own" {
			names = append(names, e.Name())
		}
	}
	return names
}

// checkNothingRan fails if a program of the repository ran, or if the model received the description of one of its agents.
func (r *repository) checkNothingRan() {
	r.t.Helper()
	if names := r.names(); len(names) > 0 {
		r.t.Fatalf("programs of the repository ran: %q", names)
	}
	if strings.Contains(r.api.Asked(), "canary-told") {
		r.t.Error("the model was told what the repository's settings say")
	}
}

func (r *repository) allRan(suffix string) {
	r.t.Helper()
	for _, name := range r.trapped {
		awaitFile(r.t, filepath.Join(r.ran, fmt.Sprint(name, suffix)))
	}
}

// The demo works below the directory for temporary files, in which other users can write.
func TestTheDemoRunsNothingOfTheDirectoryAboveIt(t *testing.T) {
	realagent.LongOnly(t)
	c := realagent.Claude(t, realagent.Model(t, realagent.Key).URL())
	above, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	if err := os.WriteFile(filepath.Join(above, ".mcp.json"),
		[]byte(`{"mcpServers": {"trap": {"command": "touch", "args": ["`+ran+`"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(c.Path, filepath.Join(bin, "claude")); err != nil {
		t.Fatal(err)
	}
	c.Setenv(t)
	t.Setenv("TMPDIR", above)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	address, _ := startPageIn(t, c.Vars["HOME"], "demo", "--open=false")
	chat := openDemo(t, address)
	chat.send(`hello [[text "an answer"]]`)
	asked := chat.await("May Claude use the settings", "an answer")
	if strings.Contains(asked.Text, "May Claude") {
		chat.press(asked, "Without them")
		chat.await("an answer")
	} else {
		t.Errorf("Claude ran without a question: %q", asked.Text)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a server of the directory above ran")
	}
}
