package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"ductor/internal/sim/hostile"
)

// The work for the output of agents and programs grows linearly with its length.
func TestTheWorkOverAnOutputIsLinear(t *testing.T) { hostile.Linear(t, hostile.Printed, readOutput) }

func BenchmarkHostileOutput(b *testing.B) { hostile.Benchmark(b, hostile.Printed, readOutput) }

func readOutput(text string) {
	OneLine(text, 300)
	Hunks(text)
	DiffMakes(text, text[:len(text)/2], text)
	_ = OwnWords(text)
	ShellCommands(text)
	ClaudeCommands(text)
	HasWord(text, "sudo")
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text can always be encoded as JSON
	}
	for _, input := range []json.RawMessage{json.RawMessage(text), json.RawMessage(`{"command":` + string(quoted) + `}`)} {
		TextsOf(input)
		Reading{Dir: "/d"}.Fields(input)
		Names([]string{"/d/x"}, "/d", input)
		OwnTitle(input)
		ApprovalAsked{Input: input}.LeadsElsewhere("/d")
		PlainJSON(input)
	}
}

// The same for the words of errors, whose regular expressions read a text in pieces.
func TestTheWorkOverAnErrorIsLinear(t *testing.T) {
	errors := func(size int) map[string]string {
		texts := hostile.Printed(size)
		maps.DeleteFunc(texts, func(name, _ string) bool {
			return !slices.Contains([]string{"limits", "resets", "quotas", "messages", "statuses", "number", "long text"}, name)
		})
		return texts
	}
	hostile.Linear(t, errors, func(text string) {
		Sharpened(&Failure{Kind: UnknownFailure, Reason: text})
		InnerMessage(text)
		ResetAt(text, time.Unix(0, 0))
		APIError{Text: text}.Kind()
	})
}

// The same for objects with many and deeply nested members.
func TestTheWorkOverAnInputIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Objects, func(text string) {
		input := json.RawMessage(text)
		Reading{Dir: "/d", Wider: []string{"a.b"}, Edit: []string{"edits"}}.Fields(input)
		Names([]string{"/d/x"}, "/d", input)
		TextsOf(input)
		PlainJSON(input)
	})
}
