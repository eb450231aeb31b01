package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/acp"
	"ductor/internal/config"
	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
)

const (
	rightToken = "sk-ant-oat01-rightrightrightrightright"
	wrongToken = "sk-ant-oat01-wrongwrongwrongwrongwrong"
)

// lockedClaude returns a Claude that is logged in only by rightToken. Its model refuses another token, and an account
// without a token.
func lockedClaude(t *testing.T, program string) string {
	t.Helper()
	refusing := t.TempDir()
	refusal := map[string]string{agent.AnyPrompt: `[[error 401 times=60]]`}
	if _, err := agent.InstallAt(refusing, refusal); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "claude")
	script := fmt.Sprintf(`#!/bin/sh
case "$CLAUDE_CODE_OAUTH_TOKEN$CLAUDE_CONFIG_DIR" in
%s*) exec %[3]s "$@" ;;
"") %[3]s "$@" | sed -u s/ANTHROPIC_API_KEY/none/ ;;
*) DUCTOR_SIM_HOME=%[2]s exec %[3]s "$@" ;;
esac
`, rightToken, refusing, program)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// awaitDeleted waits until a message of the user is deleted.
func (town *town) awaitDeleted(said telegram.Message) {
	town.t.Helper()
	eventually(town.t, "a message to be deleted", func() bool {
		_, there := town.chat.View().Message(said.ID)
		return !there
	})
}

// Claude is logged in by a token that its user sends. Nobody sees the token, and nothing but the key's own file has it.
func TestClaudeIsLoggedInByAToken(t *testing.T) {
	town := surroundings(t, func(c *config.Config) {
		c.Agents.Claude.Path, c.Log.Level = lockedClaude(t, c.Agents.Claude.Path), "debug"
	})
	t.Setenv("ANTHROPIC_API_KEY", "")
	o := town.ordealWithLog()
	const button = "🔑 Log in to Claude"
	town.say("/model")
	menu := town.awaitMessage(func(m telegram.Message) bool { return m.HasButton(button) && m.HasButton("Gemini") })
	town.pressOn(menu, button)
	asked := town.await("claude setup-token")
	town.awaitDeleted(town.say("%s", rightToken[:10]))
	town.await("That token isn't complete.")
	town.awaitDeleted(town.say(wrongToken))
	town.await("Claude refused this token")
	if a := town.pressOn(asked, "✖ Cancel"); a.Text != "This button no longer works." {
		t.Errorf("a log-in that is over is cancelled: %q", a.Text)
	}
	town.pressOn(menu, button)
	asked = town.awaitMessage(func(m telegram.Message) bool { return m.ID > asked.ID && m.HasButton("✖ Cancel") })
	town.pressOn(asked, "✖ Cancel")
	town.await("Cancelled")

	town.say("/doctor")
	town.pressOn(town.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton(button) && strings.Contains(m.Text, "passed")
	}), button)
	town.awaitAfter(telegram.Message{ID: asked.ID}, "setup-token")
	half := len(rightToken) / 2
	town.awaitDeleted(town.say("%s\n  %s", rightToken[:half], rightToken[half:])) // as a terminal wraps it
	town.await("✅ Claude is logged in.")
	town.say(`[[text "at work with " env=CLAUDE_CODE_OAUTH_TOKEN]] [[text " indeed"]]`)
	town.await("at work with [secret removed] indeed")

	o.daemon.kill()
	late := town.say(wrongToken) // ductor no longer waits for it
	o.rise()
	town.awaitDeleted(late)
	town.await("I wasn't waiting for one")
	town.say(`[[text "still at work"]]`)
	town.await("still at work")
	for _, token := range []string{rightToken, wrongToken} {
		checkNotShown(t, town.chat, token[:20])
		checkNotStored(t, town.database(), token[:20])
	}
	key := filepath.Join(town.cfg.Storage.Dir, "keys", "claude.CLAUDE_CODE_OAUTH_TOKEN")
	if text, err := os.ReadFile(key); err != nil || strings.TrimSpace(string(text)) != rightToken {
		t.Errorf("the key is %q, %v", text, err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	checkNotOnDisk(t, town.cfg.Storage.Dir, rightToken)
	checkNotOnDisk(t, town.cfg.Storage.Dir, wrongToken)
}

// A button logs in the account that its message names, and not the one that the chat uses.
func TestAButtonLogsItsAccountIn(t *testing.T) {
	home := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	town := surroundings(t, func(c *config.Config) {
		c.Agents.Default, c.Agents.Fallback = "claude", nil
		c.Agents.Claude.Path = lockedClaude(t, c.Agents.Claude.Path)
		c.Agents.Claude.Accounts = map[string]cli.AccountSettings{"work": {Home: home}}
	})
	t.Setenv("ANTHROPIC_API_KEY", "")
	town.start()
	const button, workButton = "🔑 Log in to Claude", "🔑 Log in to Claude (work)"
	town.answer("/account work", "Claude (work)")
	town.say("hello")
	failed := town.awaitButton(workButton)
	want := "Claude (work) is not logged in: Run env CLAUDE_CONFIG_DIR=" + home + " claude auth login in"
	if !strings.Contains(failed.Text, want) {
		t.Errorf("the turn says %q, want %q", failed.Text, want)
	}
	town.say("/doctor")
	report := town.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton(button) && strings.Contains(m.Text, "passed")
	})
	logIn := func(on telegram.Message, button, name, of string) {
		t.Helper()
		last := town.say("/help")
		town.pressOn(on, button)
		town.awaitAfter(last, "only "+name+" gets the token")
		town.awaitDeleted(town.say(rightToken))
		town.await("✅ " + name + " is logged in.")
		key := filepath.Join(town.cfg.Storage.Dir, "keys", of+".CLAUDE_CODE_OAUTH_TOKEN")
		if text, err := os.ReadFile(key); err != nil || strings.TrimSpace(string(text)) != rightToken {
			t.Errorf("the key of %s is %q, %v", of, text, err)
		}
	}
	logIn(report, button, "Claude", "claude")
	other := filepath.Join(town.cfg.Storage.Dir, "keys", "claude@work.CLAUDE_CODE_OAUTH_TOKEN")
	if _, err := os.Stat(other); err == nil {
		t.Error("the button of /doctor logs in the account of the chat")
	}
	town.answer("/account default", "Claude (default)")
	logIn(failed, workButton, "Claude (work)", "claude@work")
}

// An agent of the Agent Client Protocol is logged in by a button, with each kind of method that it can offer.
func TestAnACPAgentIsLoggedIn(t *testing.T) {
	t.Setenv("SIM_ACP_NAME", "gem")
	t.Setenv("SIM_ACP_METHODS", `[{"id":"browser","name":"With a browser"},{"id":"fails","name":"Not today"},`+
		`{"id":"hangs","name":"Some day"},{"id":"tty","name":"By hand","type":"terminal","args":["--login"]},`+
		`{"id":"k","name":"Key","type":"env_var","vars":[{"name":"GEM_KEY"}]}]`)
	town := newTown(t, func(c *config.Config) {
		c.Agents.Default, c.Agents.Fallback = "gem", nil
		c.Agents.ACP = overACP("gem", c.Agents.Gemini.Path, "SIM_ACP_NAME", "SIM_ACP_METHODS")
	})
	town.say("hello")
	card := town.awaitButton("🔑 Log in to Gem")
	if !strings.Contains(card.Text, "Gem is not logged in: Log in from /model in the chat.") {
		t.Errorf("the card says %q", card.Text)
	}
	town.pressOn(card, "🔑 Log in to Gem")
	ways := town.awaitButton("With a browser")
	for _, part := range []string{
		"How should Gem log in?", town.cfg.Agents.Gemini.Path + " --acp --login",
		"ductor secret set gem.GEM_KEY",
	} {
		if !strings.Contains(ways.Text, part) {
			t.Errorf("the ways are %q, without %q", ways.Text, part)
		}
	}
	town.pressOn(ways, "Not today")
	town.await("Gem is not logged in: The browser was closed")
	town.pressOn(ways, "Some day")
	town.pressOn(town.awaitMessage(func(m telegram.Message) bool {
		return m.HasButton("✖ Cancel") && strings.Contains(m.Text, "Some day")
	}), "✖ Cancel")
	town.await("The login of Gem is cancelled.")
	town.pressOn(ways, "With a browser")
	town.await("✅ Gem is logged in.")
	town.say(`[[text "now I work"]]`)
	town.await("now I work")
}

// With auth_method an agent logs in on its own.
func TestAnACPAgentLogsInOnItsOwn(t *testing.T) {
	t.Setenv("SIM_ACP_NAME", "gem")
	t.Setenv("SIM_ACP_METHODS", `[{"id":"browser","name":"With a browser"}]`)
	town := newTown(t, func(c *config.Config) {
		c.Agents.Default = "gem"
		gem := overACP("gem", c.Agents.Gemini.Path, "SIM_ACP_NAME", "SIM_ACP_METHODS")["gem"]
		gem.AuthMethod = "browser"
		c.Agents.ACP = map[string]acp.Settings{"gem": gem}
	})
	town.say(`[[text "at once"]]`)
	town.await("at once")
}
