package bot

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/outbox"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// What outlives the grace of an agent by five seconds is named, and so is what would not end at all.
func TestAnAbortNamesWhatStillRuns(t *testing.T) {
	for name, remain := range map[string][]cli.ProcessName{
		"it ends after all": nil, "it would not end": {{Name: "deaf", PID: 12}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInboundRig(t)
				defer r.end()
				over := make(chan struct{})
				alive := []cli.ProcessName{{Name: "deaf", PID: 12}, {Name: "sleep", PID: 13}}
				r.desk.running = true
				r.desk.stopping = &orchestrator.Stopping{Over: over, Alive: func(context.Context) []cli.ProcessName { return alive }}
				r.send(r.text("/abort"))
				time.Sleep(cli.DefaultGrace + 5*time.Second - time.Millisecond)
				synctest.Wait()
				if got := r.voice.texts(); len(got) > 0 {
					t.Fatalf("it tells already: %q", got)
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				alive = remain
				close(over)
				synctest.Wait()
				end := "Stopped."
				if remain != nil {
					end = "Not all of it could be stopped. These processes still run: deaf (12)."
				}
				want := []string{"Stopping… These processes still run: deaf (12), sleep (13).", end}
				if got := r.voice.texts(); !slices.Equal(got, want) {
					t.Errorf("it tells %q, want %q", got, want)
				}
			})
		})
	}
}

func (v *voiceFake) texts() (texts []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.edits {
		texts = append(texts, e.Text)
	}
	return texts
}

// An early notice leaves before anything is stored, and then nothing is stored of it.
func TestAnEarlyNoticeWaitsForNoStore(t *testing.T) {
	inOffice(t, func(o *office) {
		o.open()
		sent := 0
		e := o.notices.sendEarly(orchestrator.ConversationID{Chat: 1}, 0, func() (string, tgapi.Keyboard) { return "Stopping…", nil }, func(message int) { sent = message })
		o.wantText("Stopping…")
		if _, keep := e.keep("Stopped.", nil); keep || sent != 1 {
			t.Errorf("it would be stored: %v; its message is %d", keep, sent)
		}
	})
}

// An early notice that waits for its chat is stored, and sent once: by this ductor or by the next.
func TestAnEarlyNoticeThatWaitsOutlivesDuctor(t *testing.T) {
	for name, restart := range map[string]bool{"the chat has room again": false, "ductor is restarted": true} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(o *office) {
				o.open()
				o.outbox.Go(context.Background(), outbox.Call{Chat: outbox.ChatOf(1), Delivery: outbox.Newest, Run: func(context.Context) error {
					return tgapi.NewCallError("test", tgapi.Fault{Kind: tgapi.RateLimited, RetryAfter: time.Hour}, nil, nil)
				}}, nil)
				synctest.Wait()
				here := orchestrator.ConversationID{Chat: 1}
				e := o.notices.sendEarly(here, 0, func() (string, tgapi.Keyboard) { return "now", nil }, func(int) {})
				notice, keep := e.keep("after a restart", nil)
				if !keep {
					t.Fatal("it left although the chat is frozen")
				}
				id, err := o.shelf.PostNotice(t.Context(), notice)
				e.kept(err == nil)
				o.notices.Wake()
				synctest.Wait()
				want := "now"
				if restart {
					o.stop()
					o.open()
					want = "after a restart"
				}
				time.Sleep(2 * time.Hour)
				o.wantText(want)
				o.wantState(id, orchestrator.Sent)
			})
		})
	}
}

// An early notice that Telegram does not take at first is stored, for a restart.
func TestAnEarlyNoticeThatDoesNotLeaveIsStored(t *testing.T) {
	inOffice(t, func(o *office) {
		fates := []bottest.Mishap{bottest.RateLimited}
		o.wall.Mishaps = func(string) bottest.Mishap {
			if len(fates) == 0 {
				return bottest.GoesWell
			}
			fates = nil
			return bottest.RateLimited
		}
		o.open()
		o.notices.sendEarly(orchestrator.ConversationID{Chat: 1}, 0, func() (string, tgapi.Keyboard) { return "Stopping…", nil }, func(int) {})
		o.wantState(1, orchestrator.Pending)
		time.Sleep(time.Minute)
		o.wantText("Stopping…")
		o.wantState(1, orchestrator.Sent)
	})
}
