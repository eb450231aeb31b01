package message

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// early makes a message that leaves before it is stored, and shows now what says gives.
func (o *office) early(says *string, life *Life) *Message {
	return o.messages.Early(Spec{Key: "stop/1", To: orchestrator.ConversationID{Chat: 1}, Content: func(context.Context) (Content, error) {
		return Content{Text: render.Plain(*says), Life: *life}, nil
	}})
}

// keep stores an early message as FinishUpdates would.
func (o *office) keep(m *Message, last string) {
	row, keep := m.Keep(Content{Text: render.Plain(last)})
	if keep {
		o.store(row)
		m.Kept(true)
	}
}

// An early message leaves before anything is stored. The store has what it owes from then on until it shows that.
func TestAnEarlyNoticeWaitsForNoStore(t *testing.T) {
	inOffice(t, func(o *office) {
		o.open()
		says, life := "Stopping…", Changes
		m := o.early(&says, &life)
		o.wantText("Stopping…")
		if len(o.shelf.Messages) > 0 {
			t.Error("something was stored before it left")
		}
		o.keep(m, "Stopped.")
		time.Sleep(time.Minute)
		if row := o.row("stop/1"); row.State != orchestrator.Sent || row.ID != 1 || row.Content == nil {
			t.Errorf("stored as %+v", row)
		}
		o.wantText("Stopping…")
		says, life = "Stopped.", Stays
		m.Update(outbox.Awaited)
		o.wantText("Stopped.")
		o.wantState("stop/1", orchestrator.Sent)
	})
}

// Of an early message that says already what it is to say nothing is stored.
func TestAnEarlyNoticeThatIsOverIsNotStored(t *testing.T) {
	inOffice(t, func(o *office) {
		o.open()
		says, life := "Nothing is running here.", Stays
		m := o.early(&says, &life)
		o.wantText(says)
		o.keep(m, says)
		time.Sleep(time.Minute)
		if len(o.shelf.Messages) > 0 {
			t.Errorf("stored: %v", o.shelf.Messages)
		}
	})
}

// An early message that waits for its chat is stored, and sent once: by this ductor or by the next.
func TestAnEarlyNoticeThatWaitsOutlivesDuctor(t *testing.T) {
	for name, restart := range map[string]bool{"the chat has room again": false, "ductor is restarted": true} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(o *office) {
				o.open()
				o.outbox.Go(context.Background(), outbox.Call{Chat: outbox.ChatOf(1), Delivery: outbox.Newest, Run: func(context.Context) error {
					return tgapi.NewCallError("test", tgapi.Fault{Kind: tgapi.RateLimited, RetryAfter: time.Hour}, nil, nil)
				}}, nil)
				synctest.Wait()
				says, life := "now", Stays
				m := o.early(&says, &life)
				o.keep(m, "after a restart")
				o.wantState("stop/1", orchestrator.Pending)
				want := "now"
				if restart {
					o.stop()
					o.open()
					want = "after a restart"
				}
				time.Sleep(2 * time.Hour)
				o.wantText(want)
				o.wantState("stop/1", orchestrator.Sent)
			})
		})
	}
}

// An early message that Telegram does not take at first is stored, for a restart.
func TestAnEarlyNoticeThatDoesNotLeaveIsStored(t *testing.T) {
	inOffice(t, func(o *office) {
		o.wall.Mishaps = bottest.AtFirst(bottest.RateLimited)
		o.open()
		says, life := "Stopped.", Stays
		o.keep(o.early(&says, &life), "Stopped.")
		time.Sleep(time.Second)
		o.wantState("stop/1", orchestrator.Pending)
		time.Sleep(time.Minute)
		o.wantText("Stopped.")
		o.wantState("stop/1", orchestrator.Sent)
	})
}

// An early message that is being sent while it is stored is not sent again, wherever ductor dies.
func TestAnEarlyNoticeThatIsBeingSentIsStoredAsThat(t *testing.T) {
	inOffice(t, func(o *office) {
		o.wall.Delay = time.Second
		o.open()
		says, life := "Stopping…", Changes
		m := o.early(&says, &life)
		time.Sleep(500 * time.Millisecond)
		row, keep := m.Keep(Content{Text: render.Plain("Stopped.")})
		if !keep || row.State != orchestrator.Sending {
			t.Errorf("it would be stored as %q: %t", row.State, keep)
		}
		o.store(row)
		time.Sleep(time.Minute)
		if got := o.row("stop/1"); got.State != orchestrator.Sending {
			t.Errorf("it is %q while it is unknown whether it was stored", got.State)
		}
		m.Kept(true)
		time.Sleep(time.Minute)
		if got := o.row("stop/1"); got.State != orchestrator.Sent || got.ID != 1 || got.Content == nil {
			t.Errorf("it is stored as %+v", got)
		}
		o.wantText("Stopping…")
	})
}
