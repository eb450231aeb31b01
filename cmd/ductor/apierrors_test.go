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
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

// After an overload, each new attempt sends Claude a prompt with a new id, since Claude drops messages with a known
// id.
func TestEachAttemptReachesClaude(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Recovery.Retries, c.Recovery.RetryAfter = 2, time.Millisecond })
	town.say(`[[error 529 delay=1ms]]`)
	town.awaitMessage(func(m telegram.Message) bool {
		return strings.Contains(m.Text, "The model behind Claude is overloaded") && m.HasButton("🔁 Run again")
	})
	if read := promptsOf(t, "claude"); len(read) != 3 {
		t.Errorf("it read %q", read)
	}
}

func TestEachAttemptReachesTheModelOfARealClaude(t *testing.T) {
	realagent.LongOnly(t)
	town, api := realTown(t, "claude", func(c *config.Config) {
		c.Recovery.Retries, c.Recovery.RetryAfter = 2, time.Millisecond
	})
	town.say(`[[error 529]]`)
	town.awaitAnswer("The model behind Claude is overloaded")
	if n := len(api.Prompts()); n != 6 { // Claude asks twice each time
		t.Errorf("the model was asked %d times", n)
	}
}

// The same table maps errors of the model's API for all agents.
func TestErrorsOfTheModelAreReadForEachAgent(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot", "tame"} {
		t.Run(agent, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) {
				c.Agents.ACP = overACP("tame", c.Agents.Gemini.Path)
				c.Agents.Default, c.Agents.Fallback, c.Recovery.Retries, c.Recovery.Failures = cli.Agent(agent), nil, 0, 0
			})
			name := strings.ToUpper(agent[:1]) + agent[1:]
			for _, e := range []struct{ script, says, button string }{
				{`[[error 401 delay=1ms]]`, name + " is not logged in", "🔁 Run again"},
				{`[[error 403 delay=1ms]]`, "The model's API refused the account of " + name, "🔁 Run again"},
				{`[[error 404 delay=1ms]]`, name + " does not know this model", "🔁 Run again"},
				{`[[error 429 delay=1ms]]`, name + " has reached its usage limit", "🔁 Run again"},
				{`[[error 500 delay=1ms]]`, name + " can't answer, because its model's API failed", "🔁 Run again"},
				{`[[error 503 delay=1ms]]`, "The model behind " + name + " is overloaded", "🔁 Run again"},
				{`[[error 529 delay=1ms]]`, "The model behind " + name + " is overloaded", "🔁 Run again"},
				{`[[error 400 delay=1ms message="prompt is too long"]]`,
					"This session is longer than the model of " + name + " can read", "🗜 Compact and continue"},
			} {
				said := town.say("[[start]]%s", e.script)
				m := town.awaitMessage(func(m telegram.Message) bool {
					return m.ID > said.ID && strings.Contains(m.Text, "⚠️")
				})
				if !strings.Contains(m.Text, "⚠️ "+e.says) || !m.HasButton(e.button) {
					t.Errorf("%s: the card says %q with %+v", e.script, m.Text, m.Keyboard)
				}
			}
		})
	}
}

// After an error of the model, ductor retries with pauses, as after an overload. If the API rejects the account, the
// user decides, even if a substitute is configured.
func TestWhatFollowsAnErrorOfTheModel(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Agents.Default, c.Agents.Fallback, c.Recovery.RetryAfter = "codex", []cli.Agent{"claude"}, time.Hour
	})
	town.say(`[[error 500 delay=1ms]]`)
	town.await("the model's API failed; next try in ")
	town.press("✖ Cancel")
	town.awaitButton("🤝 Go on with Claude")
	town.say(`[[start]][[error 403 delay=1ms]]`)
	m := town.await("The model's API refused the account of Codex")
	if strings.Contains(m.Text, "Claude") || !m.HasButton("🤝 Go on with Claude") {
		t.Errorf("the card says %q with %+v", m.Text, m.Keyboard)
	}
}

// If the substitute fails too, the card no longer names it, and no button offers an agent that has just failed.
func TestTheSubstituteFailsToo(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Agents.Fallback = []cli.Agent{"codex"}
		c.Agents.Gemini.Enabled, c.Agents.Copilot.Enabled = false, false
	})
	town.say(`[[error 401 delay=1ms]]`)
	m := town.awaitMessage(func(m telegram.Message) bool {
		return strings.Contains(m.Text, "Codex is not logged in") && m.HasButton("🔁 Run again")
	})
	if !strings.HasPrefix(m.Text, "🔁 Tried Codex too. Claude is not logged in") ||
		strings.Contains(fmt.Sprint(m.Keyboard), "Go on with") {
		t.Errorf("the card says %q with %+v", m.Text, m.Keyboard)
	}
	// The same after a press hands the prompt over.
	town = newTown(t, func(c *config.Config) {
		c.Agents.Fallback = nil
		c.Agents.Gemini.Enabled, c.Agents.Copilot.Enabled = false, false
	})
	town.say(`[[error 403 delay=1ms]]`)
	town.press("🤝 Go on with Codex")
	m = town.awaitMessage(func(m telegram.Message) bool {
		return strings.Contains(m.Text, "The model's API refused the account of Codex") && m.HasButton("🔁 Run again")
	})
	if strings.Contains(fmt.Sprint(m.Keyboard), "Go on with") {
		t.Errorf("the buttons are %+v", m.Keyboard)
	}
}

// An agent without support for pictures gets the text and the picture's path, and the chat says so.
func TestAnAgentThatTakesNoPictures(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"Gemini": func(c *config.Config) { c.Agents.Default, c.Agents.Gemini.Mode = "gemini", "one-shot" },
		"Blind": func(c *config.Config) {
			program := filepath.Join(t.TempDir(), "blind")
			script := "#!/bin/sh\n" + c.Agents.Gemini.Path + ` "$@" | sed -u 's/"image":true/"image":false/'` + "\n"
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			c.Agents.ACP = overACP("blind", program)
			c.Agents.Default = "blind"
		},
	} {
		t.Run(name, func(t *testing.T) {
			town := newTown(t, change)
			town.chat.Person().SendPhoto(town.chat, []byte("\x89PNG\r\n\x1a\n"),
				telegram.WithCaption(`what is this? [[text "I cannot see it."]]`))
			m := town.awaitAnswer("I cannot see it.")
			if !strings.Contains(m.Text, "⚠️ "+name+" can't take pictures, so it gets only the path of the file") {
				t.Errorf("the card says %q", m.Text)
			}
			if read := promptsOf(t, "gemini"); len(read) != 1 || !strings.Contains(read[0], "what is this?") ||
				!strings.Contains(read[0], `[Attached file "`) {
				t.Errorf("it reads %q", read)
			}
		})
	}
}

// ductor enables an experimental feature of Codex. No answer begins with Codex's warning about it.
func TestCodexDoesNotWarnOfWhatDuctorEnables(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *town{
		"scripted": func(t *testing.T) *town {
			return newTown(t, func(c *config.Config) { c.Agents.Default = "codex" })
		},
		"real": func(t *testing.T) *town {
			realagent.LongOnly(t)
			town, _ := realTown(t, "codex", nil)
			return town
		},
	} {
		t.Run(name, func(t *testing.T) {
			town := open(t)
			for i := range 4 {
				town.say(`[[text "Answer %d."]]`, i)
				if m := town.awaitAnswer(fmt.Sprintf("Answer %d.", i)); strings.Contains(m.Text, "⚠️") {
					t.Errorf("the card says %q", m.Text)
				}
				town.say("/new")
			}
		})
	}
}
