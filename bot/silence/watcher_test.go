package silence

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

var here = orchestrator.ConversationID{Chat: 7}

func turnOf() orchestrator.Turn {
	return orchestrator.Turn{ID: "t1", Agent: "claude", Prompt: orchestrator.Prompt{Conversation: here, Message: 3}}
}

// rig has a chat and a journal that outlive processes.
type rig struct {
	chat    *bottest.Chat
	journal *bottest.Journal
	quiet   bool
}

func watching(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &rig{chat: bottest.NewChat(t), journal: bottest.NewJournal()}) })
}

func (r *rig) life(t *testing.T, f func(w *Watcher)) {
	out, log := bottest.NewOutbox(), slog.New(slog.DiscardHandler)
	f(New(Options{
		Messages: message.New(out, r.chat, r.journal, nil, log), Stop: func(_ lang.Printer, turn cli.TurnID) tgapi.Button { return bottest.Buttons{}.Stop(turn) }, After: func() time.Duration { return 5 * time.Minute },
		Quiet: func(time.Time) bool { return r.quiet },
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := out.Drain(ctx); err != nil {
		t.Error(err)
	}
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// An agent that is silent for five minutes gets one notice, which disappears when the agent becomes active.
func TestASilentAgentGetsOneNotice(t *testing.T) {
	watching(t, func(t *testing.T, r *rig) {
		r.life(t, func(w *Watcher) {
			c := w.Follow(turnOf())
			c.Observe(cli.ToolStarted{ID: "1", Name: "Bash", Title: "npm test"})
			after(4 * time.Minute)
			c.Observe(cli.TextDelta{Text: "x"})
			after(4 * time.Minute)
			if n := r.chat.Count(""); n != 0 {
				t.Fatalf("%d calls for an agent that is not silent", n)
			}
			after(2 * time.Minute)
			posts := r.chat.Visible()
			if len(posts) != 1 || posts[0].ReplyTo != 3 || posts[0].Silent || r.chat.Text() != "🔇 Claude has been silent for 5 min. It may be thinking, or it may be stuck.\nRunning: Run npm test\n[⏳ Wait]" {
				t.Fatalf("the chat shows\n%s", r.chat.Text())
			}
			c.Observe(cli.ToolEnded{ID: "1"})
			after(time.Hour)
			if r.chat.Text() != "" || r.chat.Count("send") != 1 {
				t.Errorf("%d messages, the chat shows\n%s", r.chat.Count("send"), r.chat.Text())
			}
			c.Ended()
		})
	})
}

// An agent that waits for its user is not silent, nor is a turn that waits for the end of a pause.
func TestAnAgentThatWaitsIsNotSilent(t *testing.T) {
	watching(t, func(t *testing.T, r *rig) {
		r.life(t, func(w *Watcher) {
			c := w.Follow(turnOf())
			c.Observe(cli.ApprovalAsked{ID: "a"})
			c.Observe(cli.ApprovalAsked{ID: "b"})
			c.Observe(cli.ApprovalWithdrawn{ID: "a"})
			after(time.Hour)
			c.Observe(cli.ApprovalWithdrawn{ID: "b"})
			c.Observe(cli.Status{Kind: cli.StatusPaused, Detail: "again in 20 min"})
			after(time.Hour)
			c.Observe(cli.Status{Kind: cli.StatusWaiting, Detail: "waits for memory"})
			after(time.Hour)
			if n := r.chat.Count(""); n != 0 {
				t.Errorf("%d calls, the chat shows\n%s", n, r.chat.Text())
			}
			c.Ended()
		})
	})
}

// The Wait button removes the notice for good. Pressed elsewhere or for another turn, it does nothing.
func TestWait(t *testing.T) {
	watching(t, func(t *testing.T, r *rig) {
		r.life(t, func(w *Watcher) {
			c := w.Follow(turnOf())
			after(6 * time.Minute)
			for _, press := range []struct {
				in    orchestrator.ConversationID
				below int
				turn  string
			}{{orchestrator.ConversationID{Chat: 8}, 1, "t1"}, {here, 2, "t2"}, {here, 1, "t2"}} {
				if answer, err := w.Press(t.Context(), press.in, press.below, press.turn); err != nil || !strings.Contains(answer.Text, "no longer") {
					t.Errorf("a press on %v says %q, %v", press, answer.Text, err)
				}
			}
			after(time.Second)
			if len(r.chat.Visible()) != 1 {
				t.Fatal("a press elsewhere removed the notice")
			}
			if answer, err := w.Press(t.Context(), here, 1, "t1"); err != nil || answer.Text != "OK, I'll wait." {
				t.Errorf("the press says %q, %v", answer.Text, err)
			}
			after(time.Hour)
			c.Observe(cli.TextDelta{Text: "x"})
			after(time.Hour)
			if r.chat.Text() != "" || r.chat.Count("send") != 1 {
				t.Errorf("%d messages, the chat shows\n%s", r.chat.Count("send"), r.chat.Text())
			}
			c.Ended()
		})
	})
}

// The end of the turn removes the notice, even if the turn ended after ductor did.
func TestTheEndOfASilentTurn(t *testing.T) {
	watching(t, func(t *testing.T, r *rig) {
		r.quiet = true
		r.life(t, func(w *Watcher) {
			c := w.Follow(turnOf())
			after(6 * time.Minute)
			c.Left()
		})
		if posts := r.chat.Visible(); len(posts) != 1 || !posts[0].Silent {
			t.Fatalf("the chat shows\n%s", r.chat.Text())
		}
		r.life(t, func(w *Watcher) { w.Forget("t1", here) })
		if r.chat.Text() != "" {
			t.Errorf("the chat shows\n%s", r.chat.Text())
		}
	})
}
