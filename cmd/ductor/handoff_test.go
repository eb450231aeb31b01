package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli/naming"
	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/agent"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/handoff"
)

// One session moves from Claude to Codex to Gemini and back. The prompts to the model's API contain the other agents'
// history once, within the budget, with both ends of the newest answer. Claude resumes its own session.
func TestRealAgentsHandOver(t *testing.T) {
	realagent.LongOnly(t)
	api := realagent.Model(t, realagent.Key)
	town := surroundings(t, func(cfg *config.Config) {
		cfg.Permissions.Mode = "bypass"
		a := &cfg.Agents
		a.Default, a.Copilot.Enabled = "claude", false
		claude, codex, gemini := realagent.Claude(t, api.URL()), realagent.Codex(t, api.URL()),
			realagent.Gemini(t, api.URL())
		claude.Setenv(t)
		codex.Setenv(t)
		gemini.Setenv(t) // last: the home has its settings
		a.Claude.Path, a.Codex.Path, a.Gemini.Path = claude.Path, codex.Path, gemini.Path
		cfg.Projects.DefaultDir, cfg.Projects.Roots = gemini.Work, []string{filepath.Dir(gemini.Work)}
	})
	town.start()
	// answered returns the user's text in the request to the model's API for a prompt.
	done := 0
	answered := func(prompt string) (asked string, card telegram.Message) {
		t.Helper()
		before := len(api.Requests())
		done++
		town.say("%s", prompt)
		card = town.awaitDone(done)
		for _, r := range api.Requests()[before:] {
			if strings.Contains(r.Prompt, prompt) {
				return r.Prompt, card
			}
		}
		t.Fatalf("no request has %q", prompt)
		return "", card
	}
	once := func(asked string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if n := strings.Count(asked, part); n != 1 {
				t.Errorf("%q is there %d times in\n%s", part, n, asked)
			}
		}
	}

	answered(`please design [[start]] [[text "the plan begins"]] [[text n=2500 size=20]] [[text " the plan ends"]]`)
	town.say("/model codex")
	town.await("Codex · its default model")
	asked, card := answered(`please build [[start]] [[text "it is built"]]`)
	once(asked, "User: please design", "Assistant (claude): the plan begins", " the plan ends\n",
		"tokens are left out here")
	told, _, _ := strings.Cut(asked, "please build [[start]]") // the text before the prompt
	if n := handoff.Tokens(told); n > town.cfg.Sessions.HandoffTokens || n < town.cfg.Sessions.HandoffTokens/2 {
		t.Errorf("%d tokens are handed over, and %d may be", n, town.cfg.Sessions.HandoffTokens)
	}
	if !strings.Contains(card.Text, "handed 1 turn to Codex") {
		t.Errorf("the card says %q", card.Text)
	}
	town.say("/model gemini")
	town.await("Gemini · its default model")
	asked, card = answered(`please review [[start]] [[text "looks good"]]`)
	once(asked, "User: please design", "User: please build", "Assistant (codex): it is built")
	if !strings.Contains(card.Text, "handed 2 turns to Gemini") {
		t.Errorf("the card says %q", card.Text)
	}
	town.say("/model claude")
	town.await("Claude · its default model")
	asked, card = answered(`please merge [[start]] [[history]]`)
	once(asked, "User: please build", "Assistant (codex): it is built\n", "User: please review",
		"Assistant (gemini): looks good\n")
	if strings.Contains(asked, "User: please design") {
		t.Errorf("claude is told what it said itself: %s", asked)
	}
	for _, part := range []string{"please design", "handed 2 turns to Claude"} {
		if !strings.Contains(card.Text, part) {
			t.Errorf("%q is not in the card %s", part, card.Text)
		}
	}
}

// A message to another model runs in the session. The next one goes to the conversation's own model.
func TestOneMessageToAnotherModel(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) { cfg.Models = map[string]naming.Alias{"other": {Use: "codex"}} })
	town.say(`first [[text "by the default"]]`)
	town.awaitDone(1)
	town.say(`@other second [[text "by the other"]]`)
	if m := town.awaitDone(2); !strings.Contains(m.Text, "handed 1 turn to Codex") ||
		!strings.Contains(m.Text, "by the other") {
		t.Errorf("the other says %q", m.Text)
	}
	town.say(`third [[text "again by the default"]]`)
	if m := town.awaitDone(3); !strings.Contains(m.Text, "handed 1 turn to Claude") {
		t.Errorf("the default says %q", m.Text)
	}
}

// A session is found by its text, forked at a message and continued. The fork's agent receives the history.
func TestASessionIsFoundAndForked(t *testing.T) {
	town := newTown(t, nil)
	town.say(`remember the zebra [[text "A zebra, noted."]]`)
	town.awaitDone(1)
	town.say(`and the lion [[text "A lion, noted."]]`)
	town.awaitDone(2)
	town.say("/sessions zebra")
	list := town.await(`Sessions with "zebra":`)
	if !strings.Contains(list.Text, "“A zebra, noted.”") && !strings.Contains(list.Text, "remember the zebra") {
		t.Errorf("it was found by %q", list.Text)
	}
	town.press(list.Keyboard[0][0].Text)
	town.await("Your next message continues it.")
	town.press("⑂ Fork…")
	messages := town.await("After which message")
	town.press(messages.Keyboard[1][0].Text) // the newest is first
	town.await("⑂ remember the zebra")
	town.say(`what now? [[text "Who knows."]]`)
	if m := town.awaitDone(3); !strings.Contains(m.Text, "handed 1 turn to Claude") {
		t.Errorf("the fork says %q", m.Text)
	}
	town.say("/sessions")
	list = town.await("1 message")
	town.press(list.Keyboard[0][0].Text)
	town.await("Last:")
	town.press("📄 Export")
	if m := town.await("The session ⑂ remember the zebra"); m.Media == nil {
		t.Errorf("the export is %+v", m)
	}
}

// The configured model summarizes history that does not fit, once. If that fails, the turn runs with both ends of the
// history.
func TestHistoryIsSummarized(t *testing.T) {
	town := newTown(t, func(cfg *config.Config) {
		cfg.Sessions.HandoffTokens, cfg.Sessions.SummaryModel = 400, "gemini"
	})
	town.say(`first [[text n=100 size=20]]`)
	town.awaitDone(1)
	town.say(`second [[text "short"]]`)
	town.awaitDone(2)
	town.say(`@codex third [[text "by the other"]]`)
	if m := town.awaitDone(3); !strings.Contains(m.Text, "handed 2 turns to Codex") ||
		!strings.Contains(m.Text, "by the other") {
		t.Errorf("the other says %q", m.Text)
	}
	town.stop()
	db, err := store.Open(t.Context(), town.database(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conv, err := db.Conversation(t.Context(), orchestrator.ConversationID{Chat: int64(town.chat.ID())})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := db.Summary(t.Context(), conv.Session); err != nil || s.Text != agent.Summary {
		t.Errorf("the summary is %+v, %v", s, err)
	}
}
