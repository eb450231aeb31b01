package main

import (
	"strings"
	"testing"

	"ductor/internal/config"
)

// acpTown is a town whose agent "gem" is the scripted Gemini, as a section [agents.acp.gem] configures it. The program calls itself
// name; empty for its own.
func acpTown(t *testing.T, name string) *town {
	t.Helper()
	t.Setenv("SIM_ACP_NAME", name)
	return newTown(t, func(c *config.Config) {
		c.Agents.Default = "gem"
		c.Agents.ACP = map[string]config.ACP{"gem": {
			Enabled: true, Path: c.Agents.Gemini.Path, Args: []string{"--acp"}, Env: []string{"GEMINI_API_KEY", "SIM_ACP_NAME"},
		}}
	})
}

// After a restart an agent replays its session behind the answer that loads it, whatever it calls itself. Nothing of that is shown.
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

// A turn that Gemini took out of its session, since it was stopped or failed, is handed over with the next prompt, once.
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
		{"zebra", `[[text "half of it"]][[hang]]`, "half of it", "Aborted", "Assistant (gemini): half of it\n[The user stopped this turn"},
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

// Lines that are equal stay, and a stream that breaks again and again ends as a failure with its words once.
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
