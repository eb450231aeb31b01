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

// early creates an early message that shows the current value of says.
func (o *rig) early(says *string, life *Lifecycle) *Message {
	return o.messages.Early(Spec{Key: "stop/1", To: orchestrator.ConversationID{Chat: 1}, Content: func(context.Context) (Content, error) {
		return Content{Text: render.Plain(*says), Lifecycle: *life}, nil
	}})
}

// keep stores an early message as FinishUpdates does.
func (o *rig) keep(m *Message, last string) {
	row, keep := m.Keep(Content{Text: render.Plain(last)})
	if keep {
		o.store(row)
		m.Kept(true)
	}
}

// An early message is sent before anything is stored. From then on the store has its owed content, until it shows that.
func TestAnEarlyNoticeWaitsForNoStore(t *testing.T) {
	withRig(t, func(o *rig) {
		o.open()
		says, life := "Stopping…", Growing
		m := o.early(&says, &life)
		o.wantText("Stopping…")
		if len(o.journal.Messages) > 0 {
			t.Error("something was stored before it left")
		}
		o.keep(m, "Stopped.")
		time.Sleep(time.Minute)
		if row := o.row("stop/1"); row.State != orchestrator.Sent || row.ID != 1 || row.Content == nil {
			t.Errorf("stored as %+v", row)
		}
		o.wantText("Stopping…")
		says, life = "Stopped.", Keep
		m.Update(outbox.Awaited)
		o.wantText("Stopped.")
		o.wantState("stop/1", orchestrator.Sent)
	})
}

// An early message that already shows its last content is not stored.
func TestAnEarlyNoticeThatIsOverIsNotStored(t *testing.T) {
	withRig(t, func(o *rig) {
		o.open()
		says, life := "Nothing is running here.", Keep
		m := o.early(&says, &life)
		o.wantText(says)
		o.keep(m, says)
		time.Sleep(time.Minute)
		if len(o.journal.Messages) > 0 {
			t.Errorf("stored: %v", o.journal.Messages)
		}
	})
}

// A message that Telegram rejected for good owes nothing: neither this process nor the next retries it.
func TestARefusedNoticeIsNotOwed(t *testing.T) {
	for name, play := range map[string]func(o *rig){
		"an early one": func(o *rig) {
			o.chat.Gone = true
			o.open()
			says, life := "Stopping…", Growing
			m := o.early(&says, &life)
			synctest.Wait()
			o.keep(m, "Stopped.")
		},
		"one of an older version": func(o *rig) {
			row := Compose(orchestrator.ConversationID{Chat: 1}, Content{Text: render.Plain("Stopped.")})
			row.Key, row.State = "stop/1", orchestrator.Failed
			o.store(row)
			o.open()
		},
	} {
		t.Run(name, func(t *testing.T) {
			withRig(t, func(o *rig) {
				o.journal.Reading = time.Second
				play(o)
				for range 2 {
					time.Sleep(time.Minute)
					o.stop()
					o.journal.Reads = 0
					o.open()
				}
				time.Sleep(10 * time.Minute)
				if o.journal.Reads > 3 {
					t.Errorf("what is owed was read %d times", o.journal.Reads)
				}
				if owed, _ := o.journal.OwedMessages(context.Background()); len(owed) > 0 {
					t.Errorf("owed: %+v", owed)
				}
			})
		})
	}
}

// Any number of early messages that need not be stored leave room for others.
func TestManyEarlyNoticesLeaveRoom(t *testing.T) {
	withRig(t, func(o *rig) {
		o.open()
		for i := range maxHeld + 1 {
			says, life := "Stopped.", Keep
			m := o.messages.Early(Spec{Key: fmt.Sprint("stop/", i), To: orchestrator.ConversationID{Chat: int64(1 + i)}, Content: func(context.Context) (Content, error) {
				return Content{Text: render.Plain(says), Lifecycle: life}, nil
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

// An early message that waits for its chat is stored, and sent once, by this process or the next.
func TestAnEarlyNoticeThatWaitsOutlivesDuctor(t *testing.T) {
	for name, restart := range map[string]bool{"the chat has room again": false, "ductor is restarted": true} {
		t.Run(name, func(t *testing.T) {
			withRig(t, func(o *rig) {
				o.open()
				o.outbox.Go(context.Background(), outbox.Call{Chat: outbox.ChatOf(1), Delivery: outbox.Newest, Run: func(context.Context) error {
					return tgapi.NewCallError("test", tgapi.Fault{Kind: tgapi.RateLimited, RetryAfter: time.Hour}, nil, nil)
				}}, nil)
				synctest.Wait()
				says, life := "now", Keep
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

// An early message that Telegram rejects at first is stored for a restart.
func TestAnEarlyNoticeThatDoesNotLeaveIsStored(t *testing.T) {
	withRig(t, func(o *rig) {
		o.chat.Mishaps = bottest.AtFirst(bottest.RateLimited)
		o.open()
		says, life := "Stopped.", Keep
		o.keep(o.early(&says, &life), "Stopped.")
		time.Sleep(time.Second)
		o.wantState("stop/1", orchestrator.Pending)
		time.Sleep(time.Minute)
		o.wantText("Stopped.")
		o.wantState("stop/1", orchestrator.Sent)
	})
}

// An early message that is stored while it is being sent is not sent again, wherever ductor dies.
func TestAnEarlyNoticeThatIsBeingSentIsStoredAsThat(t *testing.T) {
	withRig(t, func(o *rig) {
		o.chat.Delay = time.Second
		o.open()
		says, life := "Stopping…", Growing
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

// The end of an early message is sent in a new message if the first one may be missing, unless that showed its end.
func TestTheEndOfAnEarlyNoticeThatMayBeMissingIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		mishap bottest.Mishap
		first  string
		want   string
		state  orchestrator.SendState
	}{
		"progress is missing":  {bottest.LostBefore, "Stopping…", "Stopped.", orchestrator.Sent},
		"progress has arrived": {bottest.LostAfter, "Stopping…", "Stopping…\n----\nStopped.", orchestrator.Sent},
		"the end is missing":   {bottest.LostBefore, "Stopped.", "", ""},
		"the end has arrived":  {bottest.LostAfter, "Stopped.", "Stopped.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			withRig(t, func(o *rig) {
				o.chat.Mishaps = bottest.AtFirst(c.mishap)
				o.open()
				says, life := c.first, Growing
				if says == "Stopped." {
					life = Keep
				}
				m := o.early(&says, &life)
				synctest.Wait()
				says, life = "Stopped.", Keep
				o.keep(m, "Stopped.")
				for range 2 {
					m.Update(outbox.Awaited)
					time.Sleep(time.Minute)
				}
				o.wantText(c.want)
				o.wantState("stop/1", c.state)
			})
		})
	}
}

// A message that is only deleted at its end owes nothing if it may have arrived.
func TestAnEarlyNoticeThatGoesAndMayBeMissingIsNotOwed(t *testing.T) {
	withRig(t, func(o *rig) {
		o.chat.Mishaps = bottest.AtFirst(bottest.LostAfter)
		o.open()
		says, life := "Asking…", Growing
		m := o.early(&says, &life)
		synctest.Wait()
		life = DeleteWhenDone
		o.keep(m, "Answered.")
		m.Update(outbox.Awaited)
		o.wantText("Asking…")
		o.wantState("stop/1", orchestrator.Unknown)
	})
}
