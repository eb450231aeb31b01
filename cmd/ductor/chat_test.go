package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

func TestAChatWithTheScriptedAgents(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		t.Run(agent, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) { c.Agents.Default = cli.Agent(agent); c.Permissions.Mode = "bypass" })
			town.say(`hello [[tool cmd="echo from-the-tool"]] [[text "It is **done**."]]`)
			m := town.awaitDone(1)
			sign := "✓ "
			if agent == "gemini" { // Gemini does not report how a command with output ended
				sign = "• "
			}
			if !strings.HasPrefix(m.Text, sign) || !strings.Contains(m.Text, "echo from-the-tool") ||
				!strings.Contains(m.Text, "It is done.") {
				t.Errorf("the card says %q", m.Text)
			}
			if !hasEntity(m, "bold", "done") {
				t.Errorf("nothing bold in %q: %+v", m.Text, m.Entities)
			}
			town.say("what was that? [[history]]")
			if m := town.awaitDone(2); !strings.Contains(m.Text, "hello") {
				t.Errorf("the second turn knows nothing of the first: %q", m.Text)
			}
			town.stop()
			town.start()
			town.say("and after a restart? [[history]]")
			if m := town.awaitDone(3); !strings.Contains(m.Text, "what was that?") {
				t.Errorf("the session did not survive: %q", m.Text)
			}
			for _, m := range town.chat.History() {
				if m.Deleted && !strings.Contains(m.Text, "Queued") {
					t.Errorf("a message was deleted: %q", m.Text)
				}
			}
		})
	}
}

func hasEntity(m telegram.Message, kind, text string) bool {
	for _, e := range m.Entities {
		if e.Type == kind && telegram.Slice(m.Text, e.Offset, e.Length) == text {
			return true
		}
	}
	return false
}

func TestAbortEndsAllAndTheQueue(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	town.say(`[[tool cmd="setsid sh -c 'sleep 600' & touch started; sleep 600"]]`)
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "started"))
	town.say("this waits")
	town.await("next in line")
	town.say("/abort")
	town.await("Aborted")
	town.checkNoTurnProcesses()
	town.say(`[[text "after"]]`)
	town.await("after")
	for _, m := range town.chat.View().FromBot() {
		if strings.Contains(m.Text, "this waits") && strings.Contains(m.Text, "You asked") {
			t.Errorf("the queued message ran: %q", m.Text)
		}
	}
}

// After an abort and after a change of the mode, ductor opens the agent again before the next message, and uses it
// for that message.
func TestAnAgentIsOpenedAheadOfTheNextMessage(t *testing.T) {
	for name, before := range map[string]func(*town){
		"after an abort": func(town *town) {
			town.say(`[[start]] [[hang]]`)
			eventually(town.t, "a turn to run", func() bool {
				return len(town.aheads()) == 0 && len(town.agents()) == 1
			})
			town.say("/abort")
			town.await("Aborted")
		},
		"after a change of the mode": func(town *town) { town.say("/permissions plan") },
	} {
		t.Run(name, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) { c.Agents.Codex.Enabled = false })
			before(town)
			eventually(t, "an agent to be opened ahead", func() bool { return len(town.aheads()) == 1 })
			ahead := town.aheads()
			// An agent that does not know the session receives the history, including its directives.
			town.say(`[[start]] [[text "here I am"]]`)
			town.await("here I am")
			if got := town.agents(); !slices.Equal(got, ahead) {
				t.Errorf("the agents %v answered, and %v was opened ahead", got, ahead)
			}
		})
	}
}

// agents returns the process ids of living agents.
func (town *town) agents() (pids []int) {
	for _, run := range town.runs() {
		if run.Alive && purposeOf(run).Mode != "" {
			pids = append(pids, run.PID)
		}
	}
	return pids
}

// aheads returns the agents that had no turn yet.
func (town *town) aheads() (pids []int) {
	for _, run := range town.runs() {
		if town.turnOf(run) == "" && run.Alive && purposeOf(run).Mode != "" {
			pids = append(pids, run.PID)
		}
	}
	return pids
}

func awaitFile(t testing.TB, path string) {
	t.Helper()
	eventually(t, "file "+path, func() bool { _, err := os.Stat(path); return err == nil })
}

func TestTheModelMenu(t *testing.T) {
	town := newTown(t, nil)
	town.say("/model")
	town.press("Codex")
	v, err := town.chat.Await(town.soon(), func(v telegram.View) bool {
		m, ok := v.Last()
		return ok && strings.Contains(m.Text, "model of Codex")
	})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := v.Last()
	town.press(m.Keyboard[0][0].Text)
	v, err = town.chat.Await(town.soon(), func(v telegram.View) bool {
		m, ok := v.Last()
		return ok && !strings.Contains(m.Text, "model of Codex")
	})
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := v.Last(); len(m.Keyboard) > 0 {
		town.press(m.Keyboard[0][0].Text)
	}
	eventually(t, "codex to be chosen", func() bool {
		m, ok := town.chat.View().Last()
		return ok && strings.Contains(m.Text, "Codex") && len(m.Keyboard) == 0
	})
	town.say(`[[text "who am I"]]`)
	if m := town.awaitDone(1); !strings.Contains(m.Text, "who am I") {
		t.Errorf("%q", m.Text)
	}
	town.say("/status")
	town.await("Codex")
}

// While a slow agent lists its models, the menu shows the known ones, prompts are answered, and the rest appears
// later.
func TestTheModelMenuDoesNotWaitForAgents(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	town := newTown(t, func(c *config.Config) {
		program := c.Agents.Codex.Path
		c.Agents.Codex.Path = filepath.Join(t.TempDir(), "codex")
		script := fmt.Sprintf("#!/bin/sh\nwhile [ ! -e %s ]; do sleep 0.02; done\nexec %s \"$@\"\n", gate, program)
		if err := os.WriteFile(c.Agents.Codex.Path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	town.say("/model")
	town.await("Codex: loading models…")
	town.say(`[[text "meanwhile an answer"]]`)
	town.await("meanwhile an answer")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	town.press("Codex")
	town.await("model of Codex")
}

func TestPermissionsInTheChat(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
	file := filepath.Join(town.cfg.Projects.DefaultDir, "a.txt")
	const write = `[[write path="a.txt" text="x"]][[text "that was all"]]`

	town.say("%s", write)
	town.press("⛔ Deny")
	m := town.awaitDone(1)
	if !strings.Contains(m.Text, "⛔") || !strings.Contains(m.Text, "Edit a.txt") {
		t.Errorf("the card does not say what was denied: %q", m.Text)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was denied was done: %v", err)
	}

	town.say("/permissions accept-edits")
	town.await("accept-edits: edits files in its folder without asking.")
	town.say("%s", write+"[[history]]")
	if m := town.awaitDone(2); strings.Contains(m.Text, "denied") || strings.Count(m.Text, "that was all") < 2 {
		t.Errorf("the same session in another mode says %q", m.Text)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "x" {
		t.Errorf("the file holds %q, %v", b, err)
	}

	town.say("/permissions")
	town.press("bypass")
	town.press("Yes, bypass everything")
	town.await("bypass: never asks.")
	town.say(`[[ask "touch asked"]][[text "asked"]]`)
	if m := town.awaitDone(3); strings.Contains(m.Text, "denied") {
		t.Errorf("in bypass the card says %q", m.Text)
	}
	town.say("/status")
	town.await("Permissions: bypass")
}

func TestRolesInTheChat(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Roles = map[string]orchestrator.Role{
			"reviewer": {Prompt: "You review.", Append: true},
			"author":   {Prompt: "You write.", Append: true, Agent: "codex"},
		}
	})
	town.say(`[[text "as claude"]]`)
	town.awaitDone(1)
	town.say("/role")
	town.press("reviewer")
	town.await("From the next turn on the agent plays: reviewer (Claude")
	town.say("[[history]]")
	if m := town.awaitDone(2); !strings.Contains(m.Text, "as claude") {
		t.Errorf("the role was played in another session: %q", m.Text)
	}
	town.say("/role author")
	town.await("plays: author (Codex")
	town.say("/status")
	town.await("Role: author")
	town.say(`[[text "as codex"]]`)
	if m := town.awaitDone(3); !strings.Contains(m.Text, "as codex") {
		t.Errorf("%q", m.Text)
	}
	town.say("/role")
	town.press("none")
	town.await("plays no role (Claude")
}

func TestStrangersGetNoAnswer(t *testing.T) {
	town := newTown(t, nil)
	other := town.srv.Private(stranger, "Mallory")
	other.Person().Send(other, "hello")
	other.Person().Send(other, "/start")
	town.say(`[[text "to the owner"]]`)
	town.awaitDone(1)
	if n := len(other.View().FromBot()); n != 0 {
		t.Errorf("a stranger got %d messages", n)
	}
	if calls := town.srv.Calls(telegram.InChat(stranger), telegram.Writes); len(calls) != 0 {
		t.Errorf("calls for a stranger: %+v", calls)
	}
}

func TestMessagesSentWhileDuctorIsDownAreAnswered(t *testing.T) {
	town := surroundings(t, nil)
	for i := range 3 {
		town.say(`[[text "answer %d"]]`, i)
	}
	town.start()
	town.awaitDone(3)
	for i := range 3 {
		n := 0
		for _, m := range ended(town.chat.View()) {
			if strings.Contains(m.Text, fmt.Sprint("answer ", i)) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("message %d was answered %d times", i, n)
		}
	}
}

func TestALongAnswerArrivesWhole(t *testing.T) {
	town := newTown(t, nil)
	const paragraphs, words = 25, 100
	script := ""
	for i := range paragraphs {
		script += fmt.Sprintf(`[[words p%d n=%d chunk=60]][[text " \n\n"]]`, i, words)
	}
	town.say("%s", script)
	town.awaitDone(1)
	all := ""
	for _, m := range town.chat.View().FromBot() {
		all += m.Text + "\n"
	}
	shown := strings.Fields(all)
	for i := range paragraphs * words {
		word := fmt.Sprintf("p%dw%d", i/words, i%words)
		if n := slices.Index(shown, word); n != i {
			t.Fatalf("word %d, %s, is shown as number %d", i, word, n)
		}
	}
}

func TestFilesReachTheAgent(t *testing.T) {
	town := newTown(t, nil)
	town.chat.Person().SendDocument(town.chat, telegram.File{Name: "notes.txt", MIME: "text/plain", Data: []byte("42")},
		telegram.WithCaption("read it"))
	m := town.awaitDone(1)
	at := strings.Index(m.Text, filepath.Join(town.cfg.Storage.Dir, environment.UploadsDir))
	if at < 0 {
		t.Fatalf("the agent is not told where the file is: %q", m.Text)
	}
	path, _, _ := strings.Cut(m.Text[at:], "]")
	if b, err := os.ReadFile(strings.TrimSpace(path)); err != nil || string(b) != "42" {
		t.Errorf("%s: %q, %v", path, b, err)
	}
}
