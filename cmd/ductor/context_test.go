package main

import (
	"slices"
	"strings"
	"testing"

	"ductor/internal/realagent"
	"ductor/internal/sim/modelapi"
	"ductor/internal/sim/telegram"
)

// The test checks the chat's texts about the context of real agents: how full it is, how to compact it, and the
// agents' commands.
func TestTheContextOfRealAgents(t *testing.T) {
	realagent.LongOnly(t)
	for agent, want := range map[string]struct{ context, compacted, commands string }{
		"claude":  {"System prompt: ", "The context is compacted: ", "/code-review: "},
		"codex":   {"tokens of ", "The context is compacted: ", "$skill-creator: "},
		"gemini":  {"hasn't reported how full its context is", "gets 3 turns of this one", "/about: "},
		"copilot": {"tokens of ", "The context is compacted: ", "/security-review: "},
	} {
		t.Run(agent, func(t *testing.T) {
			town, api := realTown(t, agent, nil)
			town.say("/context")
			town.await("the context is empty")
			for i := range 3 {
				town.say(
					`remember the word zebra%d [[start]] [[text "I shall remember it, and say it when I am asked."]]`,
					i)
				town.awaitDone(i + 1)
			}

			shown := town.answer("/context", want.context)
			if strings.Contains(shown, "tokens of ") != strings.Contains(shown, "█░") {
				t.Errorf("the bar does not fit: %q", shown)
			}
			town.answer("/cmd", want.commands)
			if agent == "copilot" {
				town.answer("/cmd allow-all on", "has no command")
			}

			asked := len(api.Requests())
			compacted := town.answer("/compact keep the zebra", want.compacted)
			if _, now, ok := strings.Cut(compacted, " before, "); ok || strings.Contains(compacted, "shortened: ") {
				if !ok {
					_, now, _ = strings.Cut(compacted, "shortened: ")
				}
				now, _, _ = strings.Cut(now, " tokens")
				if after := town.answer("/context", "tokens of "); !strings.Contains(after, now+" tokens of ") {
					t.Errorf("the compaction says %q, and /context %q", compacted, after)
				}
			}
			if got := len(api.Requests()) - asked; (got > 0) != (agent != "gemini") {
				t.Errorf("the model was asked %d times", got)
			}

			m := town.say(`go on [[start]] [[text "as before"]]`)
			town.awaitAfter(m, "as before")
			if last := api.Requests(); agent == "gemini" && !requestHas(last[asked:], "zebra2") {
				t.Error("the new session is not told the history")
			}
		})
	}
}

// answer sends a text and returns the answer that contains part.
func (town *town) answer(text, part string) string {
	town.t.Helper()
	said := town.say("%s", text)
	m, err := town.chat.AwaitMessage(town.soon(), func(m telegram.Message) bool {
		return m.ID > said.ID && strings.Contains(m.Text, part)
	})
	if err != nil {
		town.fatal(err)
	}
	town.t.Logf("%s\n%s", text, m.Text)
	return m.Text
}

func requestHas(requests []modelapi.Request, part string) bool {
	return slices.ContainsFunc(requests, func(r modelapi.Request) bool { return strings.Contains(r.Prompt, part) })
}
