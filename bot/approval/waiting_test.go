package approval

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/orchestrator"
)

// waitingRig shows approvals in a fake chat that supports pins, under a fake clock, over restarts.
type waitingRig struct {
	chat    *bottest.Chat
	journal *bottest.Journal
	quiet   bool
}

// life runs a process until f returns.
func (r *waitingRig) life(t *testing.T, f func(s *Screen)) {
	out, log := bottest.NewOutbox(), slog.New(slog.DiscardHandler)
	s := New(Options{
		Messages: message.New(out, r.chat, r.journal, nil, log), Outbox: out, Pins: r.chat, Quiet: func(time.Time) bool { return r.quiet },
		Journal: r.journal, Log: log, Now: time.Now,
	})
	s.Attach(struct{ Service }{})
	f(s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = out.Drain(ctx) // a killed process sends nothing more
}

func waiting(asked time.Time) orchestrator.Approval {
	a := openApproval()
	a.Asked, a.Expires = asked, asked.Add(30*time.Minute)
	return a
}

func pinnedPosts(chat *bottest.Chat) (pinned []string) {
	for _, p := range chat.Visible() {
		if p.Pinned {
			pinned = append(pinned, p.Text.Text)
		}
	}
	return pinned
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A waiting approval is pinned, and the chat gets one reminder. The decision undoes both.
func TestAnApprovalThatWaitsIsPinnedAndRemindsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &waitingRig{chat: bottest.NewChat(t), journal: bottest.NewJournal()}
		r.life(t, func(s *Screen) {
			a := waiting(time.Now())
			s.Show(a, false)
			after(5 * time.Second)
			if got := pinnedPosts(r.chat); len(got) != 0 {
				t.Errorf("pinned at once: %q", got)
			}
			after(10 * time.Second)
			if got := pinnedPosts(r.chat); len(got) != 1 || !strings.Contains(got[0], "May Claude run this command?") {
				t.Errorf("pinned: %q", got)
			}
			after(29 * time.Minute)
			posts := r.chat.Visible()
			if len(posts) != 2 || posts[1].Silent || posts[1].ReplyTo != 1 || !strings.Contains(posts[1].Text.Text, "is still waiting for your decision. At ") {
				t.Errorf("the chat shows\n%s", r.chat.Text())
			}
			a.State = orchestrator.ApprovalAllowed
			s.Show(a, false)
			after(time.Minute)
		})
		if got := pinnedPosts(r.chat); len(got) != 0 || len(r.chat.Visible()) != 1 {
			t.Errorf("after the decision pinned: %q, and the chat shows\n%s", got, r.chat.Text())
		}
	})
}

// Most approvals are decided soon: they are neither pinned nor is there a reminder.
func TestAnApprovalThatIsDecidedSoonIsNotPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &waitingRig{chat: bottest.NewChat(t), journal: bottest.NewJournal()}
		r.life(t, func(s *Screen) {
			a := waiting(time.Now())
			s.Show(a, false)
			after(8 * time.Second)
			a.State = orchestrator.ApprovalDenied
			s.Show(a, false)
			after(time.Hour)
		})
		if n := r.chat.Count("pin") + r.chat.Count("unpin"); n != 0 || r.chat.Count("send") != 1 {
			t.Errorf("%d pins, %d messages", n, r.chat.Count("send"))
		}
	})
}

// A reminder makes no sound in quiet hours. The approval itself always does.
func TestAReminderInQuietHoursMakesNoSound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &waitingRig{chat: bottest.NewChat(t), journal: bottest.NewJournal(), quiet: true}
		r.life(t, func(s *Screen) {
			s.Show(waiting(time.Now()), false)
			after(16 * time.Minute)
		})
		if posts := r.chat.Visible(); len(posts) != 2 || posts[0].Silent || !posts[1].Silent {
			t.Errorf("the chat shows\n%s", r.chat.Text())
		}
	})
}

// If the bot may not pin in a chat, it tries once, and the approval works as always.
func TestAChatInWhichTheBotMayNotPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &waitingRig{chat: bottest.NewChat(t), journal: bottest.NewJournal()}
		r.chat.Mishaps = func(method string) bottest.Mishap {
			if method == "pin" {
				return bottest.RefusedOnce
			}
			return bottest.GoesWell
		}
		r.life(t, func(s *Screen) {
			a := waiting(time.Now())
			s.Show(a, false)
			after(10 * time.Minute)
			s.Show(a, false)
			after(time.Minute)
			a.State = orchestrator.ApprovalAllowed
			s.Show(a, false)
			after(time.Minute)
		})
		if r.chat.Count("pin") != 1 || r.chat.Count("unpin") != 0 || !strings.Contains(r.chat.Text(), "✅ Allowed.") {
			t.Errorf("%d pins, %d unpins, the chat shows\n%s", r.chat.Count("pin"), r.chat.Count("unpin"), r.chat.Text())
		}
	})
}

// The next process unpins the messages that this one pinned, and sends no second reminder.
func TestAPinnedApprovalOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &waitingRig{chat: bottest.NewChat(t), journal: bottest.NewJournal()}
		a := waiting(time.Now())
		r.life(t, func(s *Screen) {
			s.Show(a, false)
			after(16 * time.Minute)
		})
		r.life(t, func(s *Screen) {
			s.Show(a, false)
			after(time.Minute)
			if n := r.chat.Count("send"); n != 2 {
				t.Errorf("%d messages, the chat shows\n%s", n, r.chat.Text())
			}
			a.State = orchestrator.ApprovalWithdrawn
			s.Show(a, false)
			after(time.Minute)
		})
		if got := pinnedPosts(r.chat); len(got) != 0 || len(r.chat.Visible()) != 1 {
			t.Errorf("pinned: %q, the chat shows\n%s", got, r.chat.Text())
		}
	})
}
