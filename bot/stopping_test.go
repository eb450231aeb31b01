package bot

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/orchestrator"
)

// The reply names processes that outlive the grace of an agent by five seconds, and those that do not end at all.
func TestAnAbortNamesWhatStillRuns(t *testing.T) {
	for name, remain := range map[string][]cli.ProcessName{
		"it ends after all": nil, "it would not end": {{Name: "deaf", PID: 12}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInboundRig(t)
				wall, out := r.reachable(t)
				defer func() {
					r.end()
					if err := out.Drain(t.Context()); err != nil {
						t.Error(err)
					}
				}()
				over := make(chan struct{})
				alive := []cli.ProcessName{{Name: "deaf", PID: 12}, {Name: "sleep", PID: 13}}
				r.desk.running = true
				r.desk.stopping = &orchestrator.Stopping{Over: over, Alive: func(context.Context) []cli.ProcessName { return alive }}
				r.send(r.text("/abort"))
				time.Sleep(cli.DefaultGrace + 5*time.Second - time.Millisecond)
				synctest.Wait()
				if got := wall.Text(); got != "Stopping…" {
					t.Fatalf("it tells already: %q", got)
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if got := wall.Text(); got != "Stopping… These processes are still running: deaf (12), sleep (13)." {
					t.Errorf("it tells %q", got)
				}
				alive = remain
				close(over)
				synctest.Wait()
				end := "Stopped."
				if remain != nil {
					end = "I couldn't stop everything. These processes are still running: deaf (12)."
				}
				if got := wall.Text(); got != end {
					t.Errorf("it tells %q, want %q", got, end)
				}
				if owed, _ := r.journal.OwedMessages(t.Context()); len(owed) > 0 {
					t.Errorf("the journal says that the reply owes %v", owed)
				}
			})
		})
	}
}

// reachable makes the rig send its messages to a fake chat.
func (r *inboundRig) reachable(t *testing.T) (*bottest.Chat, *outbox.Outbox) {
	wall, out := bottest.NewChat(t), bottest.NewOutbox()
	r.handlers.commands.messages = message.New(out, wall, r.journal, nil, slog.New(r.logs))
	return wall, out
}

// If the previous process left a reply to an abort at "Stopping…", it shows the result once the turn is over: by an
// edit, or in a new message if it is unknown whether the reply arrived.
func TestAReplyToAnAbortIsResumed(t *testing.T) {
	for name, c := range map[string]struct {
		state  orchestrator.SendState
		alive  []cli.ProcessName
		want   string
		during string
	}{
		"sent":       {orchestrator.Sent, nil, "Stopped.", "Stopping…"},
		"not yet":    {orchestrator.Pending, nil, "Stopped.", ""},
		"unknown":    {orchestrator.Sending, nil, "Stopping…\n----\nStopped.", "Stopping…"},
		"it is deaf": {orchestrator.Sent, []cli.ProcessName{{Name: "deaf", PID: 12}}, "I couldn't stop everything. These processes are still running: deaf (12).", "Stopping…"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				journal, wall := newJournalFake(), bottest.NewChat(t)
				row := message.Compose(orchestrator.ConversationID{Chat: 7}, message.Content{Text: render.Plain("Stopped.")})
				row.Key, row.State = "stop/1", c.state
				if c.during != "" {
					id, err := wall.Send(t.Context(), tgapi.Message{To: row.Conversation, Text: render.Plain(c.during)})
					if err != nil {
						t.Fatal(err)
					}
					if c.state == orchestrator.Sent {
						row.ID = id
					}
				}
				if err := journal.SaveMessage(t.Context(), row); err != nil {
					t.Fatal(err)
				}
				over := make(chan struct{})
				desk := &deskFake{stopping: &orchestrator.Stopping{Over: over, Alive: func(context.Context) []cli.ProcessName { return c.alive }}}
				for _, restarts := range []bool{true, false} { // a second restart changes nothing
					out, log := bottest.NewOutbox(), slog.New(slog.DiscardHandler)
					messages := message.New(out, wall, journal, nil, log)
					ctx, cancel := context.WithCancel(t.Context())
					var all sync.WaitGroup
					if err := resumeStops(ctx, messages, desk, all.Go, nil, log); err != nil {
						t.Fatal(err)
					}
					all.Go(func() { messages.Run(ctx) })
					time.Sleep(time.Minute)
					synctest.Wait()
					if restarts {
						if got := wall.Text(); got != c.during {
							t.Errorf("before the turn is over the chat shows %q", got)
						}
						close(over)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					if got := wall.Text(); got != c.want {
						t.Errorf("the chat shows %q, want %q", got, c.want)
					}
					cancel()
					all.Wait()
					if err := out.Drain(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// While the result of an abort cannot be stored, ductor tries again less and less often, and without an error in the
// log: the disk reports its own trouble. The result is shown once it can be stored.
func TestAReplyToAnAbortIsStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal, wall, out, logs := newJournalFake(), bottest.NewChat(t), bottest.NewOutbox(), &bytes.Buffer{}
		row := message.Compose(orchestrator.ConversationID{Chat: 7}, message.Content{Text: render.Plain("Stopped.")})
		row.Key, row.State = "stop/1", orchestrator.Pending
		if err := journal.SaveMessage(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		journal.Full.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		messages := message.New(out, wall, journal, nil, slog.New(slog.DiscardHandler))
		var all sync.WaitGroup
		log := slog.New(slog.NewTextHandler(logs, nil))
		if err := resumeStops(ctx, messages, &deskFake{}, all.Go, nil, log); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { messages.Run(ctx) })
		time.Sleep(time.Hour)
		synctest.Wait()
		tries := strings.Count(logs.String(), "level=WARN")
		if tries < 10 || tries > 20 || strings.Contains(logs.String(), "ERROR") {
			t.Errorf("%d tries in an hour:\n%s", tries, logs)
		}
		journal.Full.Store(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := wall.Text(); got != "Stopped." {
			t.Errorf("the chat shows %q", got)
		}
		cancel()
		all.Wait()
		if err := out.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
