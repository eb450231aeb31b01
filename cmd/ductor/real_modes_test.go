package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// askedOf is how many of the eleven commands and the file each agent asks about in ask, after a denial of each. Qwen
// Code refuses `sed -i` on a file that it has not read, and the sandbox of Codex refuses commands.
func askedOf() map[string]int {
	return map[string]int{"opencode": 12, "qwen": 11, "cline": 12, "claude-agent-acp": 12, "codex-acp": 1}
}

// The agents that users configure are held to plan, ask and accept-edits as ductor is configured for them, though their
// own default is to run everything. In bypass they do everything.
func TestUsersAgentsAreHeldToTheirModes(t *testing.T) {
	realagent.LongOnly(t)
	for agent, asks := range askedOf() {
		t.Run(agent, func(t *testing.T) {
			town, _ := realSurroundings(t, agent, func(c *config.Config) { c.Permissions.Mode = "plan" })
			m := &modeTown{town: town, denied: map[telegram.MessageID]bool{}}
			m.seed(agent)
			town.start()
			m.denyEach()
			m.chooses("ask")
			if asked := m.denyEach(); asked != asks {
				t.Errorf("in ask the agent asks %d times", asked)
			}
			if agent == "opencode" && m.countRequests(`[[tool cmd="> kept.txt"]]`) != 0 {
				t.Error("OpenCode asks for what is no command: remove that from docs/security.md")
			}
			if agent != "cline" { // it asks for a patch as for a command, without its changes
				m.chooses("accept-edits")
				m.writeUnasked(agent)
			}
			m.say("/permissions bypass")
			m.press("Yes, bypass everything")
			m.await("bypass: never asks")
			before := m.disk()
			if asked := m.each(); asked > 0 {
				t.Errorf("in bypass the agent asks %d times", asked)
			}
			after := m.disk()
			for _, name := range []string{
				"touched", "made", "echoed", "copied", "elsewhere", "teed", "package.json", "written.txt",
			} {
				if _, made := after[filepath.Join(m.cfg.Projects.DefaultDir, name)]; !made {
					t.Errorf("in bypass it does not make %s", name)
				}
			}
			if after["git"] == before["git"] || after[filepath.Join(m.cfg.Projects.DefaultDir, "found.txt")] != "" {
				t.Errorf("in bypass only this has changed: %s", difference(before, after))
			}
		})
	}
}

// each makes the agent write in each way, a turn each, denies its requests, and returns their number. OpenCode ends a
// turn after a denial.
func (m *modeTown) each() (asked int) {
	m.t.Helper()
	file := filepath.Join(m.cfg.Projects.DefaultDir, "written.txt")
	scripts := []string{fmt.Sprintf("[[write path=%s text=x]]", file)}
	for _, command := range writers() {
		scripts = append(scripts, fmt.Sprintf("[[tool cmd=%q]]", command))
	}
	for _, script := range scripts {
		asked += m.countRequests(script)
	}
	return asked
}

// countRequests makes the agent run a script, denies its requests, and returns their number.
func (m *modeTown) countRequests(script string) (asked int) {
	m.t.Helper()
	m.say(`[[start]] %s [[text "after it"]]`, script)
	for m.turns++; m.denyNext(); asked++ {
	}
	return asked
}

// denyEach is each, after which the disk is as before.
func (m *modeTown) denyEach() (asked int) {
	m.t.Helper()
	before := m.disk()
	asked = m.each()
	if after := m.disk(); !maps.Equal(before, after) {
		m.t.Errorf("the disk has changed: %s", difference(before, after))
	}
	return asked
}

// writeUnasked makes the agent write a file, which accept-edits allows, and run a command, which it does not.
func (m *modeTown) writeUnasked(agent string) {
	m.t.Helper()
	before := m.disk()
	if m.countRequests(realagent.Writes(agent, m.cfg.Projects.DefaultDir, "accepted.txt", "x")) > 0 {
		m.t.Error("in accept-edits it asks before it writes")
	}
	m.countRequests(`[[tool cmd="touch touched"]]`)
	before[filepath.Join(m.cfg.Projects.DefaultDir, "accepted.txt")] = "x"
	after := m.disk()
	if name := filepath.Join(m.cfg.Projects.DefaultDir, "accepted.txt"); after[name] == "x\n" {
		after[name] = "x"
	}
	if !maps.Equal(before, after) {
		m.t.Errorf("in accept-edits this changes: %s", difference(before, after))
	}
}
