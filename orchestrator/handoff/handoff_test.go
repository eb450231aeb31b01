package handoff

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ductor/orchestrator"
)

// The expected counts come from gpt-tokenizer (npm) for the vocabularies o200k_base and cl100k_base.
func TestTokensComeCloseToVocabularies(t *testing.T) {
	for _, tc := range []struct {
		file          string
		o200k, cl100k int
	}{
		{"chinese.txt", 93, 134},
		{"code.go.txt", 1537, 1547},
		{"diff.txt", 236, 230},
		{"german.txt", 111, 147},
		{"japanese.txt", 81, 105},
		{"json.ndjson", 1149, 1138},
		{"log.txt", 1214, 1196},
		{"prose.md", 1442, 1441},
		{"russian.txt", 86, 144},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", tc.file))
		if err != nil {
			t.Fatal(err)
		}
		got := Tokens(string(text))
		if low, high := 0.85*float64(min(tc.o200k, tc.cl100k)),
			1.15*float64(max(tc.o200k, tc.cl100k)); float64(got) < low || float64(got) > high {
			t.Errorf("%s: %d tokens, the vocabularies count %d and %d", tc.file, got, tc.o200k, tc.cl100k)
		}
	}
}

func turn(prompt, answer string) orchestrator.Turn {
	return orchestrator.Turn{
		Agent: "claude", State: orchestrator.TurnDone,
		Prompt: orchestrator.Prompt{Text: prompt}, Outcome: orchestrator.Outcome{Text: answer},
	}
}

func TestWrite(t *testing.T) {
	long := "BEGINNING " + strings.Repeat("many words stand here. ", 4000) + " THE END"
	aborted := turn("run it", "I be")
	aborted.State = orchestrator.TurnAborted
	withFile := turn("look at this", "a cat")
	withFile.Prompt.Attachments = []orchestrator.Attachment{{Path: "/up/cat.png", Name: "cat.png", MIME: "image/png"}}
	for _, tc := range []struct {
		name, summary         string
		turns                 []orchestrator.Turn
		has, hasNot           []string
		budget, told, leftOut int
	}{
		{name: "nothing", budget: 8000},
		{
			name: "all of it", budget: 8000, told: 3,
			turns: []orchestrator.Turn{turn("first?", "one"), withFile, aborted},
			has: []string{
				head + "User: first?\nAssistant (claude): one\nUser: look at this\n" +
					"[Attached file \"cat.png\" (image/png): /up/cat.png]\nAssistant (claude): a cat\n",
				"Assistant (claude): I be\n[The user stopped this turn before its end.]\n" + tail,
			},
		},
		{
			name: "both ends of a long answer", budget: 1000, told: 1, leftOut: 1,
			turns: []orchestrator.Turn{turn("short question", long)},
			has:   []string{"User: short question\n", "BEGINNING", "THE END", "tokens are left out here"},
		},
		{
			name: "both ends of a long question too", budget: 1000, told: 1, leftOut: 1,
			turns: []orchestrator.Turn{turn(long, "ANSWER "+long)},
			has:   []string{"User: BEGINNING", "ANSWER BEGINNING", "THE END\nAssistant", "THE END\n" + tail},
		},
		{
			name: "the newest before older ones", budget: 1000, told: 2, leftOut: 3,
			turns: []orchestrator.Turn{turn("oldest", "zero"), turn("old", "one"), turn("long", long),
				turn("new", "two")},
			has: []string{"[2 turns before are left out.]\nUser: long\n", "THE END",
				"User: new\nAssistant (claude): two\n"}, hasNot: []string{"oldest"},
		},
		{
			name: "a summary", budget: 1000, told: 1, summary: "They built a bot.",
			turns: []orchestrator.Turn{turn("and now", "done")},
			has:   []string{head + "Summary of what was said first:\nThey built a bot.\nUser: and now\n"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			told := Write(tc.turns, tc.summary, tc.budget)
			for _, part := range tc.has {
				if !strings.Contains(told.Text, part) {
					t.Errorf("%q is not in\n%s", part, told.Text)
				}
			}
			for _, part := range tc.hasNot {
				if strings.Contains(told.Text, part) {
					t.Errorf("%q is in\n%s", part, told.Text)
				}
			}
			if told.Turns != tc.told || told.LeftOut != tc.leftOut || told.Tokens > tc.budget {
				t.Errorf("%d turns, %d left out, %d tokens", told.Turns, told.LeftOut, told.Tokens)
			}
		})
	}
}

// The history never exceeds the budget, is valid text, and has both ends of the newest answer if there is room for
// them.
func TestWriteStaysWithinItsBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var turns []orchestrator.Turn
		for i := range rapid.IntRange(1, 12).Draw(t, "turns") {
			words := rapid.SampledFrom([]string{"word ", "Ünïcödé ", "文字", "{\"a\": 1},\n", "0123456789"}).Draw(t,
				"words")
			turns = append(turns, turn(fmt.Sprintf("q%d %s", i,
				strings.Repeat(words, rapid.IntRange(0, 800).Draw(t, "asked"))),
				fmt.Sprintf("first%d %s last%d", i, strings.Repeat(words, rapid.IntRange(0, 3000).Draw(t, "said")), i)))
		}
		budget := rapid.IntRange(200, 9000).Draw(t, "budget")
		told := Write(turns, "", budget)
		newest := len(turns) - 1
		switch {
		case told.Tokens > budget:
			t.Errorf("%d tokens of %d", told.Tokens, budget)
		case !utf8.ValidString(told.Text):
			t.Error("it is no text")
		case told.Turns+told.LeftOut < len(turns):
			t.Errorf("%d told and %d left out of %d", told.Turns, told.LeftOut, len(turns))
		case !strings.Contains(told.Text, fmt.Sprintf(": first%d ", newest)) ||
			!strings.Contains(told.Text, fmt.Sprintf(" last%d\n", newest)):
			t.Errorf("the newest answer lost an end:\n%s", told.Text)
		}
	})
}
