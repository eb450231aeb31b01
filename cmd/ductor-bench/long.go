package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"ductor/internal/sim/script"
	"ductor/internal/sim/telegram"
)

// longAnswer measures a long answer that the agent writes at full speed in a new chat. It returns the times until the
// chat shows the last word, and until it shows the whole answer, as messages or as a file.
func longAnswer(ctx context.Context, s *setup) ([]float64, error) {
	chat, last := s.chat(1), "lastword"
	whole := squeeze(strings.Join(script.Generated(s.sizes.deltas, 20), "") + last)
	var shown, complete time.Duration
	sent := time.Now()
	chat.Person().Send(chat, fmt.Sprintf(`[[text n=%d size=20]] [[text %q]]`, s.sizes.deltas, last))
	seen := func(v telegram.View) bool {
		text := s.everything(v)
		if shown == 0 && strings.Contains(text, last) {
			shown = time.Since(sent)
		}
		if strings.Contains(squeeze(text), whole) {
			complete = time.Since(sent)
		}
		return complete > 0
	}
	if _, err := chat.Await(ctx, seen); err != nil {
		return nil, s.explain(err)
	}
	return []float64{ms(shown), ms(complete)}, nil
}

// everything returns the text of all messages of the bot and of all its files.
func (s *setup) everything(v telegram.View) string {
	var messages, files strings.Builder
	for _, m := range v.FromBot() {
		if strings.Contains(m.Text, "[[") { // the message quotes the prompt, which contains directives in [[ ]]
			continue
		}
		messages.WriteString(m.Text + "\n")
		if m.Media == nil {
			continue
		}
		if data, ok := s.srv.FileData(m.Media.FileID); ok {
			files.WriteString("\n" + string(data))
		}
	}
	return messages.String() + files.String()
}

// squeeze removes white space, because an answer may lose white space where it is split into messages.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}
