package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// ran is a part of a script that runs a command, and counts its runs in a file.
const ran = `[[tool cmd="echo x >> ran"]]`

// timesRan returns the number of runs of ran.
func (town *town) timesRan() int {
	b, _ := os.ReadFile(filepath.Join(town.cfg.Projects.DefaultDir, "ran"))
	return strings.Count(string(b), "x")
}

// failure is a row of the table in docs/recovery.md with its cause.
type failure struct {
	change  func(*config.Config)
	script  string
	says    []string // texts on its card
	buttons []string
	runs    int           // expected runs of the command in the script
	timeout time.Duration // limits the turn
}

// failures returns the rows in which nothing is repeated, since a command ran or a repetition is impossible.
func failures() map[string]failure {
	bypass := func(c *config.Config) { c.Permissions.Mode = "bypass" }
	return map[string]failure{
		"overloaded": {change: bypass, script: ran + `[[error 529 delay=1ms]]`, runs: 1,
			says:    []string{"The model behind Claude is overloaded", "1 command ran before that."},
			buttons: []string{"🔁 Run again", "🤝 Go on with Codex"}},
		"crashed": {change: bypass, script: ran + `[[crash code=3]]`, runs: 1,
			says:    []string{"Claude ended unexpectedly (exit code 3)", "1 command ran before that."},
			buttons: []string{"🔁 Run again"}},
		"timeout": {change: bypass, timeout: 3 * time.Second,
			script: ran + `[[text "half"]][[hang]]`, runs: 1,
			says: []string{"half", "Claude took too long and was stopped. What it wrote so far is kept.",
				"1 command ran before that."}, buttons: []string{"🔁 Run again"}},
		"unreadable": {change: bypass, script: ran + `[[garbage]][[silent]]`, runs: 1,
			says:    []string{"Claude wrote something that ductor can't read: one line", "1 command ran before that."},
			buttons: []string{"🔁 Run again"}},
		"context full": {change: bypass, script: ran +
			`[[error 400 message="prompt is too long: 210000 tokens > 200000 maximum"]]`, runs: 1,
			says:    []string{"This session is longer than the model of Claude can read", "1 command ran before that."},
			buttons: []string{"🗜 Compact and continue", "🌱 New session with a summary"}},
		"not logged in": {change: bypass, script: ran + `[[error 401]]`, runs: 1,
			says:    []string{"Claude is not logged in", "Log in on the machine.", "1 command ran before that."},
			buttons: []string{"🔑 Log in to Claude", "🤝 Go on with Codex", "🔁 Run again"}},
		"not installed": {change: func(c *config.Config) {
			bypass(c)
			c.Agents.Claude.Path, c.Agents.Fallback = "/nowhere/claude", nil
		}, script: ran,
			says:    []string{"Claude is not installed, or not in the PATH of ductor"},
			buttons: []string{"🤝 Go on with Codex", "🔁 Run again"}},
		"refused": {change: bypass, script: ran + `[[error 400 message="this is not allowed"]]`, runs: 1,
			says: []string{"Claude refused this request"}},
		"unknown model": {change: bypass, script: ran + `[[error 404]]`, runs: 1,
			says:    []string{"Claude does not know this model", "Choose another with /model."},
			buttons: []string{"🔁 Run again"}},
	}
}

// The card of each kind of failure says what happened and what ran, and has its buttons. Nothing is repeated without
// a press.
func TestEachFailureHasItsButtons(t *testing.T) {
	for name, f := range failures() {
		t.Run(name, func(t *testing.T) {
			town, card := failedTown(t, f)
			for _, part := range f.says {
				if strings.Count(card.Text, part) != 1 {
					t.Errorf("the card has %q %d times: %s", part, strings.Count(card.Text, part), card.Text)
				}
			}
			var has []string
			for _, row := range card.Keyboard {
				for _, b := range row {
					if !strings.Contains(b.Text, "Steps") {
						has = append(has, b.Text)
					}
				}
			}
			if fmt.Sprint(has) != fmt.Sprint(f.buttons) {
				t.Errorf("its buttons are %q, want %q", has, f.buttons)
			}
			if n := town.timesRan(); n != f.runs {
				t.Errorf("the command ran %d times, want %d", n, f.runs)
			}
		})
	}
}

// failedTown returns a town in which a prompt failed, and its card. On a slow machine a limited turn may end before its
// script, so failedTown doubles the limit until the card has all texts.
func failedTown(t *testing.T, f failure) (town *town, card telegram.Message) {
	t.Helper()
	for limit := f.timeout; ; limit *= 2 {
		town = newTown(t, func(c *config.Config) {
			f.change(c)
			c.Recovery.RetryAfter = time.Second
			if limit > 0 {
				c.Agents.TurnTimeout = limit
			}
		})
		town.say("%s", f.script)
		card = town.awaitMessage(func(m telegram.Message) bool {
			return !m.HasButton("⏹ Stop") && (strings.Contains(m.Text, f.says[len(f.says)-1]) ||
				limit > 0 && strings.Contains(m.Text, "took too long"))
		})
		missing := slices.ContainsFunc(f.says, func(part string) bool { return !strings.Contains(card.Text, part) })
		if !missing || limit == 0 || limit > time.Minute {
			return town, card
		}
		town.stop()
	}
}

// Each button after a failure runs the prompt exactly once: in the session, in a new one, or with another agent.
func TestEachButtonAfterAFailure(t *testing.T) {
	overloaded := ran + `[[error 529 delay=1ms]]`
	full := ran + `[[error 400 message="prompt is too long: 210000 tokens > 200000 maximum"]]`
	for button, script := range map[string]string{
		"🔁 Run again": ran + `[[crash code=3]]`, "🤝 Go on with Codex": overloaded, "🌱 New session with a summary": full,
		"🗜 Compact and continue": full,
	} {
		t.Run(button, func(t *testing.T) {
			town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
			town.say("%s", script)
			card := town.awaitButton(button)
			data := town.buttonData(card, button)
			town.pressOn(card, button)
			eventually(t, "the prompt to run once more", func() bool { return town.timesRan() == 2 })
			a, err := town.chat.Person().TapEarly(card, data).Answer(town.soon())
			if err != nil || !strings.Contains(a.Text, "already") {
				t.Errorf("a second press is answered with %q: %v", a.Text, err)
			}
			if button == "🤝 Go on with Codex" {
				town.say("/status")
				town.await("Codex · ")
			}
			town.say(`[[start]] [[text "the end"]]`)
			town.await("the end")
			if n := town.timesRan(); n != 2 {
				t.Errorf("it ran %d times", n)
			}
		})
	}
}

// A prompt whose folder was missing runs again once the folder is back, or in the folder that the chat chose instead.
func TestAPromptWhoseFolderWasMissing(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	work := town.cfg.Projects.DefaultDir
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(work, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fails := func() telegram.Message {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(work, "a")); err != nil {
			t.Fatal(err)
		}
		said := town.say("%s", ran)
		return town.awaitMessage(func(m telegram.Message) bool {
			return m.ID > said.ID && strings.Contains(m.Text, "The agent's folder can't be used") &&
				m.HasButton("🔁 Run again")
		})
	}
	town.say("/cwd a")
	town.await("From now on the agent works in " + filepath.Join(work, "a"))
	m := fails()
	if err := os.Mkdir(filepath.Join(work, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	town.pressOn(m, "🔁 Run again")
	awaitFile(t, filepath.Join(work, "a", "ran"))
	town.awaitDone(1)
	m = fails()
	town.say("/cwd %s", filepath.Join(work, "b"))
	town.await("From now on the agent works in " + filepath.Join(work, "b"))
	town.pressOn(m, "🔁 Run again")
	awaitFile(t, filepath.Join(work, "b", "ran"))
}

// If the model is overloaded and nothing ran, ductor retries after a pause. The card shows a countdown, and its
// button cancels the retry.
func TestAnOverloadedModelIsTriedAgain(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Recovery.RetryAfter = 30 * time.Second })
	town.say(`[[error 529 delay=1ms]]`)
	countdown := regexp.MustCompile(`the model is overloaded; next try in \d+ s`)
	first := countdown.FindString(town.await("the model is overloaded; next try in ").Text)
	town.awaitMessage(func(m telegram.Message) bool { // the countdown runs
		now := countdown.FindString(m.Text)
		return now != "" && now != first
	})
	town.press("✖ Cancel")
	m := town.awaitButton("🤝 Go on with Codex")
	if !strings.Contains(m.Text, "The model behind Claude is overloaded") {
		t.Errorf("the card says %q", m.Text)
	}
}

// A substitute answers for a missing agent, and for one that failed too often. The first line of the card says so.
func TestASubstituteIsNamedFirst(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Agents.Claude.Path, c.Agents.Fallback = "/nowhere/claude", []cli.Agent{"codex"}
	})
	town.say(`[[text "here I am"]]`)
	m := town.await("here I am")
	if strings.Contains(m.Text, "ductor doctor") { // Claude's own advice suffices
		t.Errorf("the card says %q", m.Text)
	}
	if !strings.HasPrefix(m.Text, "🔁 Codex answers. Claude is not installed, or not in the PATH of ductor") {
		t.Errorf("the card says %q", m.Text)
	}

	town = newTown(t, func(c *config.Config) {
		c.Permissions.Mode, c.Recovery.Failures, c.Agents.Fallback = "bypass", 2, []cli.Agent{"codex"}
	})
	for i := range 2 {
		town.say(ran + `[[crash code=3]]`)
		town.awaitDone(i + 1)
	}
	eventually(t, "the status to say that Claude is left alone", func() bool { // this happens when the end of the turn is stored
		return strings.Contains(town.answer("/status", "Folder: "),
			"Claude failed 2 times in a row, so I pause it until")
	})
	town.say("/model")
	town.awaitMessage(func(m telegram.Message) bool {
		return strings.Contains(m.Text, "Which agent") && strings.Contains(m.Text, "so I pause it until")
	})
	town.say(`[[start]] [[text "in its place"]]`)
	if m := town.await("in its place"); !strings.HasPrefix(m.Text, "🔁 Codex answers. Claude failed 2 times in a row") {
		t.Errorf("the card says %q", m.Text)
	}
}

// Each attempt of a turn gets the rest of the budget, including an automatic retry.
func TestEveryAttemptHasABudget(t *testing.T) {
	var g gatedAgent
	town := surroundings(t, func(c *config.Config) {
		c.Budget.Day, c.Agents.Fallback, c.Agents.Claude.Mode = 1, nil, cli.OneShot
		g = putGate(t, &c.Agents.Claude.Path)
	})
	g.set(t, "die")
	town.start()
	town.say("hello")
	town.await("ended unexpectedly")
	args, err := os.ReadFile(g.args)
	if err != nil {
		t.Fatal(err)
	}
	if all, capped := strings.Count(string(args), "\n"),
		strings.Count(string(args), "--max-budget-usd 1.00"); all != 2 || capped != 2 {
		t.Errorf("%d attempts, %d with a budget:\n%s", all, capped, args)
	}
}

// ductor recognizes limits and log-ins that an agent reports only in words. The time of a reset is in the zone that
// the agent names.
func TestLimitsAreKnownByTheirWords(t *testing.T) {
	var g gatedAgent
	town := newTown(t, func(c *config.Config) {
		c.Agents.Fallback = nil
		g = putGate(t, &c.Agents.Claude.Path)
	})
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	reset := time.Now().Add(3 * time.Hour).Truncate(time.Minute)
	for text, want := range map[string]string{
		"You've hit your weekly limit": "Claude has reached its usage limit: You've hit your weekly limit",
		"You're out of extra usage":    "Claude has reached its usage limit: You're out of extra usage",
		"Credit balance is too low":    "Claude has reached its usage limit: Credit balance is too low",
		"OAuth token has expired":      "Claude is not logged in: OAuth token has expired",
		"You've hit your session limit · resets " + reset.In(tokyo).Format("3:04pm") +
			" (Asia/Tokyo)": reset.Local().Format(" 15:04") + ": You've hit your session limit",
		`API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"The token ended"}}`: "Claude is not logged in: The token ended",
	} {
		g.fail(t, text)
		said := town.say("hello")
		town.awaitAfter(said, want)
	}
}

// If something in a session makes every prompt fail, such as a picture that the API cannot read, a button starts a
// new session with the history but without the picture.
func TestAPoisonedSessionIsLeftByAButton(t *testing.T) {
	var g gatedAgent
	town := newTown(t, func(c *config.Config) { g = putGate(t, &c.Agents.Claude.Path) })
	g.fail(t,
		`API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}`,
		"api_error_status", 400)
	town.chat.Person().SendPhoto(town.chat, []byte("\xff\xd8\xff\xe0 broken"), telegram.WithCaption("what is this?"))
	if m := town.await("Claude refused this request: Could not process image"); len(m.Keyboard) > 0 {
		t.Errorf("after the first refusal there are %+v", m.Keyboard)
	}
	said := town.say(`only words [[text "now I understand"]]`)
	town.awaitAfter(said, "That's the second time in a row.")
	g.open(t)
	town.press("🌱 Start fresh")
	town.awaitAfter(said, "now I understand")
	read := promptsOf(t, "claude")
	if len(read) != 1 || !strings.Contains(read[0], "User: what is this?") ||
		!strings.Contains(read[0], "The model refused it, so it is left out.") ||
		strings.Contains(read[0], "Attached file") || strings.Count(read[0], "only words") != 1 {
		t.Errorf("in the new session it reads %q", read)
	}
}
