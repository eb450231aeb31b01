package main

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
	"ductor/internal/sim/telegram"
)

// troubles returns situations in which the model, ductor or the agent fails.
func troubles() []situation {
	return []situation{
		{"401", func(s *scene) { s.fails(http.StatusUnauthorized, "not logged in") }},
		{"403", func(s *scene) { s.fails(http.StatusForbidden, "refused the account") }},
		{"429", func(s *scene) { s.fails(http.StatusTooManyRequests, "limit") }},
		{"500", func(s *scene) { s.fails(http.StatusInternalServerError, "the model's API") }},
		{"529", func(s *scene) { s.fails(529, "overloaded") }},
		{"broken stream", (*scene).streamBreaks},
		{"context full", (*scene).contextIsFull},
		{"compact", (*scene).compacts},
		{"summary", (*scene).summarizes},
		{"restart in text", (*scene).restartsInText},
		{"restart in tool", (*scene).restartsInATool},
		{"restart in card", (*scene).restartsInACard},
		{"kill -9", (*scene).isKilled},
		{"resume", (*scene).resumes},
	}
}

// fails makes the model's API fail until the chat reports it or a retry. Then the API works again, and the same turn
// or the next prompt is answered.
func (s *scene) fails(status int, said string) {
	const mute = "trying its model again" // for an agent that reports no retry
	s.api.Fail(status, "")
	defer s.api.Recover()
	s.prompt(`the prompt that fails [[start]] [[text "It works again."]]`)
	m, ok := s.awaitShown("word of the failure within a minute", func(m telegram.Message) bool {
		return strings.Contains(m.Text, said) || strings.Contains(m.Text, mute) || hasFooter(m) &&
			strings.Contains(m.Text, "⚠️")
	})
	if !ok {
		return
	}
	if !strings.Contains(m.Text, said) && !strings.Contains(m.Text, mute) {
		s.recordDifference("it says “%s”", failureIn(m.Text))
	}
	if status != http.StatusUnauthorized && strings.Contains(m.Text, "not logged in") {
		s.recordDifference("it says that it is not logged in")
	}
	s.api.Recover()
	if !hasFooter(m) {
		s.awaitDone("It works again.")
		return
	}
	s.prompt("/model %s", s.agent) // otherwise ductor does not use the agent after a limit
	s.prompt(`[[start]] [[text "It works again."]]`)
	s.awaitDone("It works again.")
}

// failureIn returns the failure in an answer, without parts that differ between runs.
func failureIn(text string) string {
	_, failure, _ := strings.Cut(text, "⚠️ ")
	line, _, _ := strings.Cut(failure, "\n")
	return regexp.MustCompile(`\d{2,}`).ReplaceAllString(line, "N")
}

func (s *scene) streamBreaks() {
	s.prompt(
		`[[start]] [[text "This is the first half of an answer. " chunk=6 delay=10ms]] [[drop times=1]] [[text "This is the rest."]]`)
	m := s.awaitDone("This is the first half of an answer.")
	if strings.Contains(m.Text, "⚠️") {
		s.recordDifference("the agent does not ask again: “%s”", failureIn(m.Text))
	} else if strings.Count(m.Text, "This is the rest.") != 1 {
		s.recordDifference("the rest is not there once")
	}
}

// fills makes a second prompt fail because the session is too long, and returns the failed answer.
func (s *scene) fills() (telegram.Message, bool) {
	s.prompt(`the first prompt [[start]] [[text "The first answer."]]`)
	s.awaitDone("The first answer.")
	s.api.Fail(http.StatusBadRequest, realagent.TooLong(s.agent))
	defer s.api.Recover()
	s.prompt(`[[start]] [[text "The second answer."]]`)
	return s.awaitShown("end of the answer", func(m telegram.Message) bool {
		return hasFooter(m) && strings.Contains(m.Text, "⚠️")
	})
}

func (s *scene) contextIsFull() {
	m, ok := s.fills()
	if !ok {
		return
	}
	if !strings.Contains(m.Text, "longer than the model") {
		s.recordDifference("it says “%s”", failureIn(m.Text))
	}
	if !m.HasButton("🗜 Compact and continue") && !m.HasButton("🌱 New session with a summary") {
		s.recordDifference("no button helps")
	}
}

func (s *scene) compacts() {
	for i := range 3 {
		s.prompt(`remember the word zebra%d [[start]] [[text "I shall remember it."]]`, i)
		s.awaitDone("I shall remember it.")
	}
	s.prompt("/compact")
	if _, ok := s.awaitShown("word about the context", func(m telegram.Message) bool {
		return strings.Contains(m.Text, "The context is compacted") || strings.Contains(m.Text, "starts a new session")
	}); !ok {
		return
	}
	s.prompt(`what now? [[start]] [[text "It goes on."]]`)
	s.awaitDone("It goes on.")
}

// summarizes continues the chat in a new session with a summary.
func (s *scene) summarizes() {
	m, ok := s.fills()
	if !ok {
		return
	}
	if !m.HasButton("🌱 New session with a summary") {
		s.recordDifference("no button for a summary")
		return
	}
	asked := len(s.api.Prompts())
	s.pressOn(m, "🌱 New session with a summary")
	s.mark = m.ID
	s.awaitDone("The second answer.")
	if !slices.ContainsFunc(s.api.Prompts()[asked:], func(r modelapi.Request) bool {
		return strings.Contains(string(r.Body), "The first answer.")
	}) {
		s.recordDifference("the new session does not know what was said")
	}
}

// restart restarts ductor while the agents continue.
func (s *scene) restart() {
	s.leave()
	s.start()
}

func (s *scene) restartsInText() {
	s.prompt(`[[start]] [[text "An earlier answer."]]`)
	s.awaitDone("An earlier answer.")
	s.prompt(`[[start]] [[text "It begins. "]] [[text n=60 delay=50ms]] [[text " And it ends."]]`)
	if _, ok := s.awaitText("It begins."); !ok {
		return
	}
	s.restart()
	if m := s.awaitDone("It begins.", "And it ends."); strings.Contains(m.Text, "An earlier answer") ||
		strings.Contains(m.Text, "⚠️") {
		s.recordDifference("more than the answer: “%s”", failureIn(m.Text))
	}
}

func (s *scene) restartsInATool() {
	gate := s.path("gate")
	_ = os.Remove(gate)
	s.prompt(
		`[[start]] [[tool cmd="touch at-gate; until test -e %s; do sleep 0.1; done"]] [[text "Through the gate."]]`,
		gate)
	if !s.decide("✅ Allow once", "until test") {
		return
	}
	awaitFile(s.t, s.path("at-gate"))
	s.restart()
	s.awaitShown("⏹ Stop after the restart", func(m telegram.Message) bool { return m.HasButton("⏹ Stop") })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.checkToolLine(s.awaitDone("Through the gate."), "✓", "until test")
}

func (s *scene) restartsInACard() {
	s.prompt(`[[start]] [[tool cmd="touch after.txt"]] [[text "It was allowed after all."]]`)
	if _, ok := s.awaitCard("touch after.txt"); !ok {
		return
	}
	s.restart()
	s.awaitShown("⏹ Stop after the restart", func(m telegram.Message) bool { return m.HasButton("⏹ Stop") })
	if s.decide("✅ Allow once", "touch after.txt") {
		s.checkToolLine(s.awaitDone("It was allowed after all."), "✓", "touch after.txt")
		s.checkFile("after.txt", true)
	}
}

func (s *scene) isKilled() {
	s.prompt(`the prompt before it died [[start]] [[text "It begins."]] [[hang]]`)
	if _, ok := s.awaitText("It begins."); !ok {
		return
	}
	s.killAgents()
	if m := s.awaitDone("It begins."); !strings.Contains(m.Text, "signal 9") {
		s.recordDifference("it says “%s”", failureIn(m.Text))
	}
	s.checkRemembers("the prompt before it died")
}

func (s *scene) resumes() {
	s.prompt(`the prompt before the night [[start]] [[text "Good night."]]`)
	s.awaitDone("Good night.")
	s.stop()
	s.start()
	s.checkRemembers("the prompt before the night")
}
