package main

import (
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/config"
)

const tooLong = `[[error 400 message="prompt is too long: 210000 tokens > 200000 maximum"]]`

// If a compaction fails, the prompt that waits for it is not sent. The card says so and offers another way.
func TestAPromptIsNotSentIfTheContextCouldNotBeShortened(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "bypass" })
	town.say("this cannot be compacted %s", ran+tooLong)
	town.press("🗜 Compact and continue")
	town.await("Error during compaction")
	card := town.await("was not compacted, so the prompt was not sent")
	if !card.HasButton("🌱 New session with a summary") {
		t.Errorf("the card has %v", card.Keyboard)
	}
	town.awaitAfter(town.say(`[[start]][[text "the end"]]`), "the end")
	if n := town.timesRan(); n != 1 {
		t.Errorf("the prompt ran %d times", n)
	}
}

// planAloud prints long texts in three turns, so that the whole history does not fit into a handoff.
func planAloud(town *town, from int) {
	for i := range 3 {
		town.say(`[[start]]plan %d: %s [[text "noted %[1]d"]]`, from+i, strings.Repeat("long words of a plan ", 40))
		town.awaitDone(from + i + 1)
	}
}

// toldOf returns the last prompt with part that a scripted agent read, or "".
func toldOf(t *testing.T, agent cli.Agent, part string) string {
	t.Helper()
	all := promptsOf(t, agent)
	i := slices.IndexFunc(all, func(p string) bool { return strings.Contains(p, part) })
	if i < 0 {
		return ""
	}
	return all[i]
}

// Gemini cannot compact its context. It summarizes the session, with the user's wishes, and continues in a new one
// with the summary.
func TestGeminiIsCompactedByItsOwnSummary(t *testing.T) {
	town := newTown(t, func(c *config.Config) {
		c.Agents.Default, c.Agents.Fallback, c.Sessions.HandoffTokens = "gemini", nil, 500
	})
	planAloud(town, 0)
	text := town.answer("/compact keep the plan", "starts a new session that gets")
	if strings.Contains(text, "Your next message") || strings.Contains(text, "left out") {
		t.Errorf("it says %q", text)
	}
	if asked := toldOf(t, "gemini", "Summarize this part"); !strings.Contains(asked, "keep the plan") ||
		!strings.Contains(asked, "plan 0:") {
		t.Errorf("it was asked for a summary by %q", asked)
	}
	town.say(`go on [[start]][[text "as before"]]`)
	town.awaitAnswer("as before")
	if told := toldOf(t, "gemini", "go on [[start]]"); !strings.Contains(told, "Summary of what was said first:") ||
		strings.Contains(told, "left out") {
		t.Errorf("the new session is told %q", told)
	}
}

// A new session with a summary contains it.
func TestANewSessionWithASummaryHasOne(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Sessions.HandoffTokens = 500 })
	planAloud(town, 0)
	town.say(`[[start]]and now %s`, tooLong)
	town.press("🌱 New session with a summary")
	eventually(t, "the prompt with a summary", func() bool {
		return strings.Contains(toldOf(t, "claude", "Summary of what was said first:"), "and now")
	})
	if asked := toldOf(t, "claude", "Summarize this part"); !strings.Contains(asked, "plan 0:") {
		t.Errorf("it was asked for a summary by %q", asked)
	}
}
