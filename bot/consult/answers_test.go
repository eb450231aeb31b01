package consult

import (
	"encoding/json"
	"strings"
	"testing"

	"ductor/bot/message"
	"ductor/orchestrator"
)

// A long answer needs no more messages than other answers may, and a file contains all of it.
func TestALongAnswerIsItsTwoEndsAndAFile(t *testing.T) {
	text := "first " + strings.Repeat("word ", 5000) + "last"
	answer := orchestrator.GroupStep{Answer: orchestrator.ConsultAnswer{Session: "c1", Text: text}}
	for most, want := range map[int]int{0: 7, 1: 1, 2: 2, 4: 4, 7: 7} {
		s := New(Options{Most: func() int { return most }, Desk: &desk{}})
		rows := s.compose(t.Context(), orchestrator.ConversationID{Chat: 7}, "q1", question{ReplyTo: 5},
			[]orchestrator.GroupStep{answer})
		var texts []string
		var files []message.File
		for i, row := range rows {
			var c message.Content
			if err := json.Unmarshal(row.Content, &c); err != nil || (c.ReplyTo == 5) != (i == 0) {
				t.Fatalf("message %d of %d: %+v, %v", i, most, c, err)
			}
			if files = append(files, c.Files...); c.Files == nil {
				texts = append(texts, c.Text.Text)
			}
			if last := len(texts) == want && c.Files == nil; last != (len(c.Keyboard) > 0) {
				t.Errorf("message %d of %d has the buttons %v", i, most, c.Keyboard)
			}
		}
		if len(texts) != want || most != 1 && !strings.Contains(texts[0], "first") ||
			!strings.Contains(texts[len(texts)-1], "last") {
			t.Errorf("of at most %d messages there are %d", most, len(texts))
		}
		if cut := want < 7; cut != (len(files) == 1 && files[0].Content == text &&
			strings.Contains(texts[want-1], "comes as a file")) {
			t.Errorf("of at most %d messages the files are %d", most, len(files))
		}
	}
}
