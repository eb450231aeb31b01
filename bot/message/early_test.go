package message

import (
	"context"
	"fmt"
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

// A message that Telegram refused for good owes nothing: neither this ductor nor the next looks at it again and again.
func TestARefusedNoticeIsNotOwed(t *testing.T) {
	for name, play := range map[string]func(o *office){
		"an early one": func(o *office) {
			o.wall.Gone = true
			o.open()
			says, life := "Stopping…", Changes
			m := o.early(&says, &life)
			synctest.Wait()
			o.keep(m, "Stopped.")
		},
		"one of an older version": func(o *office) {
			row := Compose(orchestrator.ConversationID{Chat: 1}, Content{Text: render.Plain("Stopped.")})
			row.Key, row.State = "stop/1", orchestrator.Failed
			o.store(row)
			o.open()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(o *office) {
				o.shelf.Reading = time.Second
				play(o)
				for range 2 {
					time.Sleep(time.Minute)
					o.stop()
					o.shelf.Reads = 0
					o.open()
				}
				time.Sleep(10 * time.Minute)
				if o.shelf.Reads > 3 {
					t.Errorf("what is owed was read %d times", o.shelf.Reads)
				}
				if owed, _ := o.shelf.OwedMessages(context.Background()); len(owed) > 0 {
					t.Errorf("owed: %+v", owed)
				}
			})
		})
	}
}

// However many early messages need not be stored, others leave.
func TestManyEarlyNoticesLeaveRoom(t *testing.T) {
	inOffice(t, func(o *office) {
		o.open()
		for i := range maxHeld + 1 {
			says, life := "Stopped.", Stays
			m := o.messages.Early(Spec{Key: fmt.Sprint("stop/", i), To: orchestrator.ConversationID{Chat: int64(1 + i)}, Content: func(context.Context) (Content, error) {
				return Content{Text: render.Plain(says), Life: life}, nil
			}})
			synctest.Wait()
			o.keep(m, says)
			m.Kept(true)
			time.Sleep(time.Second)
		}
		key := o.post(1, "A notice.")
		o.messages.Wake()
		time.Sleep(time.Minute)
		o.wantState(key, orchestrator.Sent)
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
