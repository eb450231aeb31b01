package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ductor/internal/sim/telegram"
)

// After ductor is killed, an agent's open request is still shown by the same message and can be answered.
func TestAPendingApprovalOutlivesDuctor(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot"} {
		t.Run(agent, func(t *testing.T) {
			town := surroundings(t, nil)
			town.agent, town.permission = agent, "ask"
			o := town.ordeal(21)
			allowed, denied := filepath.Join(o.cfg.Projects.DefaultDir, "allowed"),
				filepath.Join(o.cfg.Projects.DefaultDir, "denied")

			o.say(`[[start]] [[ask cmd="touch %s"]] [[text "after the first"]]`, allowed)
			asked := o.awaitButton("✅ Allow once")
			o.daemon.kill()
			o.rise()
			o.pressOn(asked, "✅ Allow once")
			o.await("after the first")
			if _, err := os.Stat(allowed); err != nil {
				t.Errorf("what was allowed after the restart was not done: %v", err)
			}

			o.awaitNoButton("✅ Allow once") // of the first request, which looks like the second
			o.say(`[[start]] [[ask cmd="touch %s"]] [[text "after the second"]]`, denied)
			asked = o.awaitButton("⛔ Deny")
			_ = o.daemon.cmd.Process.Signal(syscall.SIGTERM)
			o.daemon.exit(t)
			o.rise()
			o.pressOn(asked, "⛔ Deny")
			o.awaitDone(2)
			if _, err := os.Stat(denied); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what was denied after the restart was done: %v", err)
			}
			n := 0 // messages sent as the question; notes that it may be missing do not count
			for _, m := range o.chat.History() {
				if first := m.Versions[0]; len(first.Keyboard) > 0 && strings.Contains(first.Text, "touch "+allowed) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("it was asked in %d messages:\n%s", n, o.chat.Transcript())
			}
			code, stdout, _ := runDuctor(t, "audit", "-c", o.config)
			if code != exitOK || !strings.Contains(stdout, "allowed") || !strings.Contains(stdout, "denied") ||
				!strings.Contains(stdout, "touch "+denied) {
				t.Errorf("the audit, exit %d: %s", code, stdout)
			}
		})
	}
}

// A stranger's press on an approval does nothing, and neither does a second press.
func TestOnlyWhoseTurnItIsMayAllow(t *testing.T) {
	town := newTown(t, nil)
	file := filepath.Join(town.cfg.Projects.DefaultDir, "x")
	town.say(`[[start]] [[ask cmd="touch %s"]] [[text "that was all"]]`, file)
	asked := town.awaitButton("✅ Allow once")
	mallory := town.srv.Person(stranger, "Mallory")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // strangers get no answer
	defer cancel()
	if answer, err := mallory.Press(ctx, asked, "✅ Allow once"); err == nil {
		t.Errorf("a stranger is told %+v", answer)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("a stranger allowed it")
	}
	town.pressOn(asked, "⛔ Deny")
	town.awaitDone(1)
	if _, err := town.chat.Person().Press(town.soon(), asked, "✅ Allow once"); err != nil {
		t.Logf("the second press: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what was denied was done")
	}
}

// awaitButton waits for a message with a button.
func (town *town) awaitButton(name string) telegram.Message {
	town.t.Helper()
	return town.awaitMessage(func(m telegram.Message) bool { return m.HasButton(name) })
}

// awaitNoButton waits until no message has the button.
func (town *town) awaitNoButton(name string) {
	town.t.Helper()
	_, err := town.chat.Await(town.soon(), func(v telegram.View) bool {
		return !slices.ContainsFunc(v.FromBot(), func(m telegram.Message) bool { return m.HasButton(name) })
	})
	if err != nil {
		town.fatal(err)
	}
}

// pressOn presses a button of one message.
func (town *town) pressOn(m telegram.Message, name string) telegram.Answer {
	town.t.Helper()
	answer, err := town.chat.Person().Press(town.soon(), m, name)
	if err != nil {
		town.fatal(err)
	}
	return answer
}
