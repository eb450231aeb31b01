package steps

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ductor/bot/bottest"
	"ductor/bot/render/rendertest"
	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/steps"
)

// fakeStore has two turns in two chats. Each output names its turn.
type fakeStore struct{}

func (fakeStore) Turn(_ context.Context, id cli.TurnID) (orchestrator.Turn, error) {
	var chat int64
	if n, err := fmt.Sscanf(string(id), "turn-%d", &chat); n != 1 || err != nil || chat > 2 {
		return orchestrator.Turn{}, orchestrator.ErrNoTurn
	}
	return orchestrator.Turn{ID: id, Prompt: orchestrator.Prompt{Conversation: orchestrator.ConversationID{Chat: chat}}}, nil
}

func (s fakeStore) StepsOf(_ context.Context, turn cli.TurnID) (all []orchestrator.Step, err error) {
	for i := range 20 {
		step, _ := s.Step(context.Background(), turn, i+1)
		step.Output = ""
		all = append(all, step)
	}
	return all, nil
}

func (fakeStore) Step(_ context.Context, turn cli.TurnID, n int) (orchestrator.Step, error) {
	if n < 1 || n > 20 {
		return orchestrator.Step{}, orchestrator.ErrNoStep
	}
	step := orchestrator.Step{Number: n, Tool: "Bash", Title: "of " + string(turn), Output: strings.Repeat("of "+string(turn)+"\n", 400)}
	if n%3 == 0 {
		step.Tool, step.Change = "", cli.FileUpdated
	}
	return step, nil
}

// Users press buttons in any order and chat, including data that no screen offers. Nothing of another chat is shown,
// each message fits, and a repeated press shows the same.
func TestAnySequenceOfPresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 12).Draw(t, "presses") {
			screen := &Screen{Steps: steps.Reader{Store: fakeStore{}}} // a restart may happen before each press
			in := orchestrator.ConversationID{Chat: rapid.Int64Range(1, 2).Draw(t, "chat")}
			what := fmt.Sprintf("turn-%d", rapid.IntRange(1, 3).Draw(t, "turn")) +
				rapid.SampledFrom([]string{"", ":", ":p0", ":p2", ":p99", ":n1", ":n3", ":n20", ":n21", ":f1", ":f3",
					":a1", ":a3", ":x1", ":n-1", ":n01"}).Draw(t, "data")
			a, err := screen.Press(context.Background(), in, 7, what)
			again, errAgain := screen.Press(context.Background(), in, 7, what)
			if fmt.Sprint(a.Text, a.Formatted, a.Edit.Keyboard, len(a.Messages), err) != fmt.Sprint(again.Text, again.Formatted, again.Edit.Keyboard, len(again.Messages), errAgain) {
				t.Errorf("%s shows something else the second time", what)
			}
			shown := a.Text + a.Formatted.Text
			for _, m := range a.Messages {
				if shown += string(m.Content); m.Conversation != in {
					t.Errorf("%s pressed in %v sends to %v", what, in, m.Conversation)
				}
			}
			if other := fmt.Sprintf("of turn-%d", 3-in.Chat); strings.Contains(shown, other) {
				t.Errorf("%s pressed in %v shows %q", what, in, other)
			}
			err = rendertest.Check(a.Formatted.Text, bottest.Entities(a.Formatted))
			if a.Formatted.Text != "" && err != nil {
				t.Error(err)
			}
			for _, row := range a.Edit.Keyboard {
				for _, b := range row {
					if b.Data == "" || b.Text == "" {
						t.Errorf("a button without data: %+v", b)
					}
				}
			}
		}
	})
}

// The page of a tool shows its arguments without its title. A button sends long arguments as a file.
func TestAStepShowsItsArguments(t *testing.T) {
	screen := &Screen{Steps: steps.Reader{Store: fakeStore{}}}
	shown := func(input string) (string, bool) {
		text, keyboard := screen.step(screen.Lang.Of(1), "turn-1", orchestrator.Step{Number: 1, Tool: "Bash", Title: "ls -a",
			Input: input})
		first := keyboard[0][0]
		return text.Text, len(keyboard) > 1 && first.Text == "📋 All arguments" && first.Data == "L:turn-1:a1"
	}
	text, more := shown(`{"command":"ls -a","timeout":5,"background":false,"list":["a","b"]}`)
	if more || strings.Count(text, "ls -a") != 1 ||
		!strings.Contains(text, "timeout: 5\nbackground: false\nlist[0]: a\nlist[1]: b") {
		t.Errorf("shown is %q, %v", text, more)
	}
	if text, more := shown(""); more || strings.Contains(text, ":") {
		t.Errorf("without arguments: %q, %v", text, more)
	}
	long := strings.Repeat("é", 40<<10)
	if text, more := shown(`{"content":"` + long + `","command":"ls -a"}`); !more || len(text) > 10<<10 {
		t.Errorf("of long arguments %d bytes are shown, %v", len(text), more)
	}
	a := screen.arguments(orchestrator.ConversationID{Chat: 1}, 7, orchestrator.Step{Number: 1, Tool: "Bash",
		Title: "ls", Input: `{"content":"` + long + `","command":"ls"}`})
	if len(a.Messages) != 1 || !strings.Contains(string(a.Messages[0].Content), "content: "+long+`\ncommand: ls`) {
		t.Errorf("the file is %d messages", len(a.Messages))
	}
}
