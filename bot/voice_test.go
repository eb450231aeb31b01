package bot

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// signing records the calls on messages.
type signing struct {
	feedbackClient
	done []string
}

func (s *signing) Edit(_ context.Context, _ int64, _ int, t render.Text, k tgapi.Keyboard) error {
	s.done = append(s.done, t.Text)
	return nil
}

func (s *signing) EditKeyboard(context.Context, int64, int, tgapi.Keyboard) error {
	s.done = append(s.done, "no buttons")
	return nil
}

func (s *signing) AnswerCallback(_ context.Context, _, text string) error {
	s.done = append(s.done, text)
	return nil
}

// An answer to a press has at most as many characters as Telegram allows.
func TestAnAnswerToAPressFits(t *testing.T) {
	bottest.WithOutbox(t, func(t *testing.T, o *outbox.Outbox, _ *bottest.Record) {
		s := &signing{}
		v := &outboxFeedback{out: o, client: s, log: slog.New(slog.DiscardHandler)}
		whole := strings.Repeat("ä", 200)
		v.Answer(t.Context(), "q", whole)
		v.Answer(t.Context(), "q", whole+"ä")
		if len(s.done) != 2 || s.done[0] != whole || len([]rune(s.done[1])) > 200 {
			t.Errorf("the answers are %q", s.done)
		}
	})
}

// An edit contains its buttons, even if it replaces a waiting edit that is older than their removal.
func TestAnEditKeepsItsButtons(t *testing.T) {
	bottest.WithOutbox(t, func(t *testing.T, o *outbox.Outbox, r *bottest.Record) {
		for range 20 { // the burst, so that no budget is left
			if err := o.Do(t.Context(), outbox.Call{Chat: bottest.Anna, Run: r.Run("x")}); err != nil {
				t.Error(err)
			}
		}
		s := &signing{}
		v := &outboxFeedback{out: o, client: s, log: slog.New(slog.DiscardHandler)}
		in := orchestrator.ConversationID{Chat: bottest.Anna.ID}
		v.Edit(in, 5, "old page", tgapi.Keyboard{{{Text: "a", Data: "a"}}})
		v.Unbutton(in, 5)
		v.Edit(in, 5, "new page", tgapi.Keyboard{{{Text: "b", Data: "b"}}})
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(s.done, []string{"new page"}) {
			t.Errorf("the message came to be %q", s.done)
		}
	})
}
