package main

import (
	"strings"
	"testing"

	"ductor/cli/acp"
	"ductor/internal/config"
)

// acpTown returns a town whose agent "gem" is the scripted Gemini, configured in [agents.acp.gem]. The program
// reports the given name, or its own if name is empty.
func acpTown(t *testing.T, name string) *town {
	t.Helper()
	t.Setenv("SIM_ACP_NAME", name)
	return newTown(t, func(c *config.Config) {
		c.Agents.Default = "gem"
		c.Agents.ACP = overACP("gem", c.Agents.Gemini.Path, "SIM_ACP_NAME")
	})
}

// overACP configures an agent that speaks the Agent Client Protocol and sees further variables.
func overACP(name, program string, variables ...string) map[string]acp.Settings {
	return map[string]acp.Settings{name: {
		Enabled: true, Path: program, Args: []string{"--acp"}, Env: append(variables, "GEMINI_API_KEY"),
	}}
}

// After a restart, an agent replays its session when ductor loads it. The chat shows nothing of that.
func TestAnAgentDoesNotAnswerWithItsPast(t *testing.T) {
	for _, name := range []string{"gemini-cli", "an agent that is not known"} {
		t.Run(name, func(t *testing.T) {
			town := acpTown(t, name)
			town.say(`[[text "the first answer"]]`)
			town.awaitDone(1)
			town.stop()
			town.start()
			town.say(`[[text "the second answer"]]`)
			m := town.awaitDone(2)
			for _, v := range m.Versions {
				if strings.Contains(v.Text, "replayed") {
					t.Errorf("it shows %q", v.Text)
				}
			}
			if !strings.HasPrefix(m.Text, "the second answer") {
				t.Errorf("it ends as %q", m.Text)
			}
		})
	}
}

// Gemini removes a stopped or failed turn from its session. ductor hands it over once, with the next prompt.
func TestWhatGeminiForgetsIsHandedOver(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Agents.Default, c.Agents.Fallback = "gemini", nil })
	next := func(prompt string) string {
		t.Helper()
		before := len(promptsOf(t, "gemini"))
		town.awaitAfter(town.say(`%s [[start]][[text "well: %[1]s"]]`, prompt), "well: "+prompt)
		var all []string
		eventually(t, "Gemini to keep the prompt", func() bool {
			all = promptsOf(t, "gemini")
			return len(all) > before
		})
		return all[len(all)-1]
	}
	for _, forgotten := range []struct{ word, script, shown, end, told string }{
		{"zebra", `[[text "half of it"]][[hang]]`, "half of it", "Aborted",
			"Assistant (gemini): half of it\n[The user stopped this turn"},
		{"giraffe", `[[error 400 message="no, no"]]`, "", "no, no", "[This turn failed before its end.]"},
	} {
		word := forgotten.word
		said := town.say(`[[start]]remember the %s %s`, word, forgotten.script)
		if forgotten.shown != "" {
			town.await(forgotten.shown)
			town.say("/abort")
		}
		town.awaitAfter(said, forgotten.end)
		told := next("go on")
		for _, part := range []string{"User: [[start]]remember the " + word, forgotten.told} {
			if strings.Count(told, part) != 1 {
				t.Errorf("%q is %d times in what it is told: %q", part, strings.Count(told, part), told)
			}
		}
		if told := next("and on"); strings.Contains(told, word) {
			t.Errorf("it is told twice: %q", told)
		}
	}
}

// Repeated lines are kept, and a stream that breaks repeatedly ends as a failure that shows its text once.
func TestWhatGeminiSaysTwice(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Agents.Default, c.Agents.Fallback = "gemini", nil })
	const line = `- this is one of five equal lines\n`
	town.say(`[[text "%s" chunk=%d]]`, strings.Repeat(line, 5), len(line)-1)
	if m := town.awaitDone(1); strings.Count(m.Text, "five equal lines") != 5 {
		t.Errorf("it shows %q", m.Text)
	}
	town.say(`[[start]][[text "half of an answer"]][[end unsaid]]`)
	m := town.await("broke off")
	if strings.Count(m.Text, "half of an answer") != 1 || !m.HasButton("🔁 Run again") {
		t.Errorf("it shows %q with %v", m.Text, m.Keyboard)
	}
}

// An agent may send text after the reply that ends its turn. One edit adds it to the turn's card, and ductor adds it
// to the stored answer, so that other agents receive it. If the card is gone or full, the text becomes a new message.
func TestTextBehindTheEndOfATurnGoesIntoItsCard(t *testing.T) {
	town := acpTown(t, "another agent")
	for i, behind := range []string{`[[text "The answer is "]][[late "FORTY-TWO."]]`,
		`[[late "The answer is FORTY-TWO."]]`} {
		said := town.say("[[start]]%s", behind)
		town.awaitAfter(said, "The answer is FORTY-TWO.")
		m := town.awaitDone(i + 1)
		if !strings.HasPrefix(m.Text, "The answer is FORTY-TWO.\n\n") || strings.Contains(m.Text, "no answer") {
			t.Errorf("the card shows %q", m.Text)
		}
		for _, v := range m.Versions { // later edits may change the footer
			if strings.Contains(v.Text, "FORTY") && !strings.HasPrefix(v.Text, "The answer is FORTY-TWO.") {
				t.Errorf("more than one edit adds it: %q", v.Text)
			}
		}
	}
	town.awaitAfter(town.say(`@claude [[start]]what was it [[text "told"]]`), "told")
	if told := toldOf(t, "claude", "what was it"); strings.Count(told,
		"Assistant (gem): The answer is FORTY-TWO.") != 2 {
		t.Errorf("the other agent is told %q", told)
	}

	said := town.say(`[[start]][[text "It goes away."]][[late "It is late." file=gone]]`)
	card := town.awaitAnswer("It goes away.")
	town.chat.Person().Delete(card)
	town.makeFile("gone", nil)
	town.awaitAfter(said, "It is late.")
	if n := town.shown("It goes away."); n != 0 {
		t.Errorf("what was deleted is there %d times", n)
	}
	said = town.say(`[[start]][[text n=400 size=10]][[late "It does not fit. " file=full]][[late "%s" after=1ms]]`,
		strings.Repeat("x", 200))
	card = town.awaitDone(4)
	town.makeFile("full", nil)
	if m := town.awaitAfter(said, "It does not fit."); m.ID == card.ID {
		t.Errorf("the card shows %q", m.Text)
	}
}
