package bot

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/render"
	"ductor/orchestrator"
)

// signing notes what is done to messages.
type signing struct {
	signs
	done []string
}

func (s *signing) Edit(_ context.Context, _ int64, _ int, t render.Text, k Keyboard) error {
	s.done = append(s.done, t.Text)
	return nil
}

func (s *signing) EditKeyboard(context.Context, int64, int, Keyboard) error {
	s.done = append(s.done, "no buttons")
	return nil
}

// An edit brings its buttons, also if it takes the place of one that waits before those were taken off.
func TestAnEditKeepsItsButtons(t *testing.T) {
	outboxTest(t, func(t *testing.T, o *Outbox, r *record) {
		for range 3 { // there is no budget for more
			if err := o.Do(t.Context(), Call{Chat: anna, Run: r.run("x")}); err != nil {
				t.Error(err)
			}
		}
		s := &signing{}
		v := &outVoice{out: o, client: s, log: slog.New(slog.DiscardHandler)}
		in := orchestrator.ConversationID{Chat: anna.ID}
		v.edit(in, 5, "old page", Keyboard{{{Text: "a", Data: "a"}}})
		v.unbutton(in, 5)
		v.edit(in, 5, "new page", Keyboard{{{Text: "b", Data: "b"}}})
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(s.done, []string{"new page"}) {
			t.Errorf("the message came to be %q", s.done)
		}
	})
}
