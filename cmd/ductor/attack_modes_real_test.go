package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// writers returns commands that change a repository in different ways.
func writers() []string {
	return []string{
		"touch touched", "mkdir made", "echo x > echoed", "cp kept.txt copied", "rm removed.txt",
		"mv moved.txt elsewhere",
		"sed -i s/old/new/ edited.txt", "npm init -y", "git commit -qm second", "echo x | tee teed",
		"find . -name found.txt -delete",
	}
}

// writing returns a script that runs all writers, edits a file, and uses Claude's tools that write to the disk. It
// also returns the number of its calls that ask.
func writing(agent, dir string) (script string, calls int) {
	var all []string
	for _, command := range writers() {
		all = append(all, fmt.Sprintf(`[[tool cmd="%s"]]`, command))
	}
	path := "written.txt"
	if agent != "codex" {
		path = filepath.Join(dir, path)
	}
	all = append(all, fmt.Sprintf(`[[write path=%s text=x]]`, path))
	if agent == "claude" {
		all = append(all, `[[call EnterWorktree args="{\"name\":\"wt\"}"]]`,
			`[[call CronCreate args="{\"cron\":\"0 9 * * *\",\"prompt\":\"x\",\"durable\":true}"]]`,
			`[[call Task args="{\"description\":\"d\",\"prompt\":\"x\",\"subagent_type\":\"general-purpose\",\"isolation\":\"worktree\"}"]]`)
	}
	calls = len(all)
	if agent == "claude" {
		calls-- // Claude has no CronCreate without the project's settings
	}
	return strings.Join(all, " "), calls
}

// In plan and ask, no real agent runs a command that writes without a user's approval. Each command has a card, which
// the test denies, or the agent rejects it. The disk does not change.
func TestTheRealAgentsWriteNothingUnasked(t *testing.T) {
	for _, agent := range realagent.Some("claude", "codex", "copilot", "gemini") {
		t.Run(agent, func(t *testing.T) {
			town, _ := realSurroundings(t, agent, func(c *config.Config) { c.Permissions.Mode = "plan" })
			m := &modeTown{town: town, denied: map[telegram.MessageID]bool{}}
			m.seed(agent)
			town.start()
			script, calls := writing(agent, town.cfg.Projects.DefaultDir)
			// The other agents reject most commands without a question.
			if asked := m.denyAll(script); agent == "claude" && asked != calls {
				t.Errorf("in plan the agent asks %d times", asked)
			}
			m.chooses("ask")
			if asked := m.denyAll(script); asked != calls {
				t.Errorf("in ask the agent asks %d times", asked)
			}
			if agent == "claude" { // otherwise its classifier would decide
				m.chooses("auto")
				m.denyAll("")
				m.chooses("plan")
				if asked := m.denyAll(script); asked != calls {
					t.Errorf("in plan after auto the agent asks %d times", asked)
				}
			}
		})
	}
}

// modeTown counts the requests of a real agent.
type modeTown struct {
	*town
	turns  int
	denied map[telegram.MessageID]bool
}

// seed makes the working directory a repository with a staged change, and configures Codex to let a model decide.
func (m *modeTown) seed(agent string) {
	m.t.Helper()
	if agent == "codex" {
		config := filepath.Join(os.Getenv("HOME"), ".codex", "config.toml")
		theirs, err := os.ReadFile(config)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(config, append([]byte("approvals_reviewer = \"auto_review\"\n"), theirs...),
			0o600); err != nil {
			m.t.Fatal(err)
		}
	}
	m.sh(`git init -q && git config user.name x && git config user.email x@example.org
		for f in kept removed moved edited found; do echo old > $f.txt; done
		git add . && git commit -qm first && echo staged > kept.txt && git add kept.txt`)
}

// chooses switches the chat to another mode.
func (m *modeTown) chooses(mode string) {
	m.t.Helper()
	m.awaitAfter(m.say("/permissions %s", mode), mode+": ")
}

// disk returns the content of the working directory, and the commit.
func (m *modeTown) disk() map[string]string {
	m.t.Helper()
	root := m.cfg.Projects.DefaultDir
	content := map[string]string{"git": m.sh("git rev-parse HEAD; git worktree list; git branch")}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			content[path] = "directory"
			return nil
		}
		data, err := os.ReadFile(path)
		content[path] = string(data)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return content
}

// denyAll makes the agent run a script, denies its requests, and returns their number.
func (m *modeTown) denyAll(script string) (asked int) {
	m.t.Helper()
	before := m.disk()
	m.say(`[[start]] %s [[text "after it"]]`, script)
	for m.turns++; m.denyNext(); asked++ {
	}
	if after := m.disk(); !maps.Equal(before, after) {
		m.t.Errorf("the disk has changed: %s", difference(before, after))
	}
	return asked
}

// denyNext denies the agent's next request. It returns false if the turn ends.
func (m *modeTown) denyNext() bool {
	m.t.Helper()
	var card telegram.Message
	_, err := m.chat.Await(m.soon(), func(v telegram.View) bool {
		i := slices.IndexFunc(v.FromBot(), func(msg telegram.Message) bool {
			return msg.HasButton("⛔ Deny") && !m.denied[msg.ID]
		})
		if i >= 0 {
			card = v.FromBot()[i]
		}
		return i >= 0 || len(ended(v)) >= m.turns
	})
	if err != nil {
		m.fatal(err)
	}
	if card.ID == 0 {
		return false
	}
	m.denied[card.ID] = true
	m.pressOn(card, "⛔ Deny")
	return true
}

func difference(before, after map[string]string) string {
	var lines []string
	for path, content := range after {
		if had, ok := before[path]; !ok || had != content {
			lines = append(lines, fmt.Sprintf("%s is %.60q", filepath.Base(path), content))
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			lines = append(lines, filepath.Base(path)+" is gone")
		}
	}
	return strings.Join(lines, ", ")
}
