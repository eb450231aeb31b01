package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// holdGit puts a git first in PATH that takes no snapshots while held.
func holdGit(t *testing.T) (hold, release func()) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	held := filepath.Join(dir, "held")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' add -A '*) while [ -e %s ]; do sleep 0.02; done ;; esac\nexec %s \"$@\"\n", held, git)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() {
			if err := os.WriteFile(held, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, func() {
			if err := os.Remove(held); err != nil {
				t.Error(err)
			}
		}
}

const newRepository = `git init -q -b main; git config user.name Ann; git config user.email a@b; echo one > a.txt; echo '*.log' > .gitignore; git add .; git commit -qm one; find . -exec touch -h -d '1 hour ago' {} +`

// While a turn waits for its user in another chat, answers have Undo, also for earlier turns. A turn that writes at
// the same time removes it, and names the other chat.
func TestAnOpenCardLeavesOtherChatsTheirUndo(t *testing.T) {
	const id = -1000000000001
	town := newTown(t, func(cfg *config.Config) {
		cfg.Permissions.Mode = "ask"
		cfg.Telegram.AllowedGroups, cfg.Telegram.GroupTrigger = []int64{id}, "all"
	})
	town.sh(newRepository)
	group := town.srv.Supergroup(id, "Team")
	change := func(name string) telegram.Message {
		t.Helper()
		stored := town.snapshots()
		asked := town.say(`Make %[1]s. [[start]] [[ask cmd="echo %[1]s > %[1]s.txt"]] [[text "made %[1]s"]]`, name)
		card := town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > asked.ID && m.HasButton("✅ Allow once")
		})
		town.awaitLook(stored + 1)
		town.pressOn(card, "✅ Allow once")
		return town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > asked.ID && strings.Contains(m.Text, "made "+name) && strings.Contains(m.Text, "1 file +1 −0")
		})
	}
	older := change("older")
	town.chat.Person().Send(group,
		`Help the team. [[start]] [[ask cmd="touch writes.log; echo team > team.txt; until [ -e go.log ]; do sleep 0.05; done"]] [[text "helped"]]`)
	card, err := group.AwaitMessage(town.soon(), func(m telegram.Message) bool { return m.HasButton("✅ Allow once") })
	if err != nil {
		town.fatal(err)
	}
	town.awaitLook(3)
	for _, m := range []telegram.Message{change("newer"), older} {
		if !m.HasButton("↩️ Undo") || strings.Contains(m.Text, "no undo") {
			t.Errorf("beside an open card: %q", m.Text)
		}
		town.pressOn(m, "↩️ Undo")
		town.awaitMessage(func(now telegram.Message) bool { return now.ID == m.ID && now.HasButton("↪️ Redo") })
	}
	town.pressOn(card, "✅ Allow once")
	dir := town.cfg.Projects.DefaultDir
	awaitFile(t, filepath.Join(dir, "writes.log"))
	if a := town.pressOn(older, "↪️ Redo"); a.Text != "A turn in the group Team is changing these files now. Try again when it has ended." {
		t.Errorf("while it writes: %q", a.Text)
	}
	if m := change("third"); !strings.Contains(m.Text,
		"no undo: another turn wrote here at the same time, in the group Team") {
		t.Errorf("beside a turn that wrote: %q", m.Text)
	}
	town.sh("touch go.log")
	if _, err := group.AwaitMessage(town.soon(), func(m telegram.Message) bool {
		return strings.Contains(m.Text, "2 files +2 −0") &&
			strings.Contains(m.Text, "no undo: another turn wrote here at the same time, in a private chat")
	}); err != nil {
		town.fatal(err)
	}
}

// A turn with only reading tools says nothing about Undo, even if a snapshot took longer than the first of them.
func TestATurnThatChangedNothingNeedsNoUndo(t *testing.T) {
	hold, release := holdGit(t)
	town := newTown(t, func(cfg *config.Config) { cfg.Permissions.Mode = "bypass" })
	town.sh(newRepository)
	for i, c := range []struct{ script, said string }{
		{`[[tool cmd="cat a.txt"]] [[call tool="list_sessions"]]`, ""},
		{`[[tool cmd="echo two >> a.txt"]]`, "no undo: the snapshot took too long"},
	} {
		hold()
		end := fmt.Sprint("the end of ", i)
		asked := town.say(`[[start]] %s [[text %q]]`, c.script, end)
		town.awaitAfter(asked, "✓ ")
		release()
		m := town.awaitMessage(func(m telegram.Message) bool {
			return strings.Contains(m.Text, end) && strings.Contains(m.Text, c.said) && !m.HasButton("⏹ Stop")
		})
		eventually(t, "the files to be compared", func() bool {
			return town.sh("git for-each-ref refs/ductor/turns") == ""
		})
		m, _ = town.chat.View().Message(m.ID)
		if c.said == "" && strings.Contains(m.Text, "no undo") {
			t.Errorf("it changed nothing, and says %q", m.Text)
		}
	}
}

// An answer is complete when the agent has ended: neither its card nor the next prompt waits for the comparison of
// files. Its result is added to the card later.
func TestTheFilesOfATurnKeepNobodyWaiting(t *testing.T) {
	hold, release := holdGit(t)
	town := newTown(t, func(cfg *config.Config) { cfg.Permissions.Mode = "ask" })
	town.sh(newRepository)
	town.say(
		`[[start]] [[ask cmd="until [ -e go.log ]; do sleep 0.02; done; echo two >> a.txt"]] [[text "the first answer"]]`)
	asked := town.awaitButton("✅ Allow once")
	town.awaitLook(1)
	town.pressOn(asked, "✅ Allow once")
	town.say(`[[start]] [[text "the second answer"]]`)
	town.await("next in line")
	hold()
	town.sh("touch go.log")
	town.await("the second answer")
	first := town.awaitMessage(func(m telegram.Message) bool { return strings.Contains(m.Text, "the first answer") })
	if first.HasButton("⏹ Stop") || strings.Contains(first.Text, "thinking") || strings.Contains(first.Text, "1 file") {
		t.Errorf("while the files are compared: %q %v", first.Text, first.Keyboard)
	}
	release()
	town.awaitMessage(func(m telegram.Message) bool {
		return m.ID == first.ID && strings.Contains(m.Text, "1 file +1 −0") && m.HasButton("↩️ Undo") &&
			strings.HasPrefix(m.Text, strings.Split(first.Text, "\n\n")[0])
	})
}

// Gemini asks before it announces a tool, and does not report how a command with output ended. A waiting command has
// a lock, a denied one stays, one with an unknown end has no ✓, and a running one is shown after a restart.
func TestTheLinesOfAnAgentThatSaysLittle(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Agents.Default, cfg.Permissions.Mode = "gemini", "ask" })
	line := func(after telegram.Message, sign, of string) telegram.Message {
		t.Helper()
		return town.awaitMessage(func(m telegram.Message) bool {
			for text := range strings.Lines(m.Text) {
				if m.ID > after.ID && strings.HasPrefix(text, sign) && strings.Contains(text, of) {
					return true
				}
			}
			return false
		})
	}
	said := town.say(`[[start]] [[ask cmd="echo denied"]]`)
	line(said, "🔐 ", "echo denied")
	town.press("⛔ Deny")
	if m := line(said, "⛔ ", "echo denied"); strings.Contains(m.Text, "✓") {
		t.Errorf("nothing ran, and the card says %q", m.Text)
	}
	said = town.say(
		`[[start]] [[ask cmd="touch runs; until [ -e go ]; do sleep 0.05; done; sleep 0.3; echo out"]] [[text "the second end"]]`)
	line(said, "🔐 ", "touch runs")
	town.press("✅ Allow once")
	awaitFile(t, filepath.Join(town.cfg.Projects.DefaultDir, "runs"))
	line(said, "⏳ ", "touch runs")
	town.leave()
	town.start()
	town.sh("touch go")
	m := line(said, "• ", "touch runs")
	if m = town.await("the second end"); strings.Contains(m.Text, "✓") ||
		!strings.Contains(strings.Split(m.Text, "\n")[0], " s") {
		t.Errorf("how a command ended is not known, and how long it took is: %q", m.Text)
	}
}

// After a turn, its answer and steps do not mention bypass. The duration of a command excludes the wait for its user.
func TestWhatAnAnswerSaysOfItsTools(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Permissions.Mode = "ask" })
	turns := 0
	for think := 4 * time.Second; ; think *= 2 { // on a slow machine the command takes as long
		said := town.say(`[[start]] [[ask cmd="true"]] [[text "the answer"]]`)
		asked := town.awaitKeyboard(said, "✅ Allow once")
		for began := time.Now(); time.Since(began) < think; { // the user thinks
			time.Sleep(50 * time.Millisecond)
		}
		pressed := time.Now()
		town.pressOn(asked, "✅ Allow once")
		answer := town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > said.ID && strings.Contains(m.Text, "the answer") && m.HasButton("🪜 Steps")
		})
		took := time.Since(pressed)
		turns++
		town.pressOn(answer, "🪜 Steps")
		steps := town.awaitAfter(said, "1 step")
		if took >= think-time.Second {
			if think > time.Minute {
				t.Fatalf("after the press the turn took %s", took)
			}
			continue
		}
		for line := range strings.Lines(steps.Text) {
			if found := regexp.MustCompile(`· (\d+)\S* (s|min)`).FindStringSubmatch(line); found != nil &&
				strings.Contains(line, "true") {
				seconds, _ := strconv.Atoi(found[1])
				if found[2] == "min" || seconds >= int(think.Seconds()) {
					t.Errorf("the step counts the wait of %s for its user: %q", think, line)
				}
			}
		}
		break
	}
	town.say("/permissions bypass")
	town.press("Yes, bypass everything")
	town.await("bypass: never asks")
	town.say(`[[start]] [[text "the end in bypass"]]`)
	if m := town.awaitDone(turns + 1); strings.Contains(m.Text, "left") {
		t.Errorf("what has ended is in bypass no more: %q", m.Text)
	}
}

// A command of a sub-agent of the real Codex is counted in the line of the tool that started the sub-agent.
func TestASubAgentOfCodexLeavesATrace(t *testing.T) {
	realagent.LongOnly(t)
	town, _ := realTown(t, "codex", nil)
	town.say(
		`[[start]] [[call spawn_agent args="{\"message\":\"hi sub [[tool cmd=\\\"echo sub\\\"]]\"}"]] [[tool cmd="sleep 2"]] [[text "that was all"]]`)
	town.await("hi sub [[tool cmd=\"echo sub\"]] · 1 tool")
}
