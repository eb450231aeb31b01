package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
)

// asWork begins the answers of the account that workAccount adds.
const asWork = "the other account answers from "

// workAccount adds the account "work" to Claude, logs it in, and returns its home. Its Claude has a store of its own.
// It does not follow the directives in the given prompt.
func workAccount(t *testing.T, c *config.Config, prompt string) (home string) {
	t.Helper()
	answer := fmt.Sprintf(`[[text %q env=CLAUDE_CONFIG_DIR]][[text " with the key " env=ANTHROPIC_API_KEY]]`, asWork)
	programs, err := agent.InstallAt(t.TempDir(), map[string]string{agent.AnyPrompt: answer, prompt: answer})
	if err != nil {
		t.Fatal(err)
	}
	home = filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".credentials.json"), []byte(`{"a":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`#!/bin/sh
case "$CLAUDE_CONFIG_DIR" in
*/work) exec %s "$@" ;;
esac
exec %s "$@"
`, programs.Claude, c.Agents.Claude.Path)
	path := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Agents.Claude.Path = path
	c.Agents.Claude.Accounts = map[string]cli.AccountSettings{"work": {Home: home}}
	return home
}

// A conversation uses the account that its user chose, also after a restart, until the configuration lacks it.
func TestAConversationUsesItsAccount(t *testing.T) {
	var home string
	town := newTown(t, func(c *config.Config) { home = workAccount(t, c, "") })
	town.say(`[[text "first from " env=CLAUDE_CONFIG_DIR]]`)
	if m := town.await("first from"); strings.Contains(m.Text, home) {
		t.Errorf("the default account answers from the other home: %q", m.Text)
	}
	town.awaitDone(1)
	if m := town.answer("/account wrok", "wrok"); !strings.Contains(m, "no account") {
		t.Errorf("a mistyped name is answered with %q", m)
	}
	town.awaitButton("work")
	town.say("/account")
	menu := town.awaitMessage(func(m telegram.Message) bool {
		return strings.Contains(m.Text, "Which account of Claude") && strings.Count(m.Text, "logged in") == 2 &&
			m.HasButton("work") && m.HasButton("✓ default")
	})
	if a := town.pressOn(menu, "work"); !strings.Contains(a.Text, "Claude (work)") {
		t.Errorf("the press is answered with %q", a.Text)
	}
	for n := range 2 {
		town.say("prompt %d", n)
		m := town.awaitDone(2 + n)
		if !strings.Contains(m.Text, asWork+home+" with the key") || strings.Contains(m.Text, "dummy") {
			t.Errorf("turn %d is answered with %q", n, m.Text)
		}
		if handed := strings.Contains(m.Text, "🤝 handed 1 turn to Claude"); handed != (n == 0) {
			t.Errorf("turn %d, what was said is handed over: %v: %q", n, handed, m.Text)
		}
		town.stop()
		town.start()
	}
	if m := town.answer("/status", "Claude"); !strings.Contains(m, "(work)") {
		t.Errorf("the status says %q", m)
	}
	town.say("/terminal")
	town.await("env CLAUDE_CONFIG_DIR=" + home + " ")
	town.answer("/account default", "Claude (default)")
	town.say(`[[text "back home"]]`)
	town.awaitDone(4)
	town.answer("/account WORK", "Claude (work)")
	town.stop()
	town.cfg.Agents.Claude.Accounts = nil
	town.start()
	town.say(`[[text "without it"]]`)
	town.await("The account work of Claude is no longer in my configuration.")
	town.await("without it")
	town.awaitDone(5)
	if m := town.answer("/account", "only its default account"); !strings.Contains(m, "[agents.claude.accounts.work]") {
		t.Errorf("/account says %q", m)
	}
}

// At a limit, a button runs the prompt with another account that can answer, once. The conversation goes on with it.
func TestALimitedPromptGoesOnWithAnotherAccount(t *testing.T) {
	const limited = `[[error 429 delay=1ms message="Try again in 2 hours."]]`
	var home string
	town := newTown(t, func(c *config.Config) { home = workAccount(t, c, limited) })
	town.say(limited)
	const button = "🤝 Go on with work"
	card := town.awaitButton(button)
	if runAtButton(card) == "" {
		t.Errorf("the buttons are %+v", card.Keyboard)
	}
	data := town.buttonData(card, button)
	town.pressOn(card, button)
	town.await(asWork + home)
	again := func(want string) {
		t.Helper()
		a, err := town.chat.Person().TapEarly(card, data).Answer(town.soon())
		if err != nil || !strings.Contains(a.Text, want) {
			t.Errorf("another press is answered with %q: %v", a.Text, err)
		}
	}
	again("already")
	town.say("and again")
	eventually(t, "the next answer of the account", func() bool { return town.shown(asWork) == 2 })
	town.awaitIdle()
	town.stop()
	town.cfg.Agents.Claude.Accounts = nil
	town.start()
	again("no longer works")
}

// Before the limit too, a button stops the turn and runs its prompt with another account.
func TestARunningTurnGoesOnWithAnotherAccount(t *testing.T) {
	near := limitsOf("claude", 0.95, 0.5, time.Now().Add(time.Hour)) + `[[text "begun"]] [[tool cmd="sleep 600"]]`
	town := newTown(t, func(c *config.Config) {
		workAccount(t, c, near)
		c.Permissions.Mode = "bypass"
	})
	town.say("/account") // the log-in is known from now on
	town.awaitMessage(func(m telegram.Message) bool { return strings.Count(m.Text, "logged in") == 2 })
	town.say("%s", near)
	const button = "🤝 Go on with work"
	card := town.awaitButton(button)
	town.pressOn(card, button)
	town.await("Aborted")
	town.await(asWork)
	if m := town.awaitIdle(); town.shown(asWork) != 1 {
		t.Errorf("the other account answered more than once: %q", m.Text)
	}
}
