package approval

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
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

// faultyJournal is a journal whose calls sometimes fail.
type faultyJournal struct {
	*bottest.Journal
	fails func(orchestrator.SendState) bool
	reads atomic.Int32
}

func (f *faultyJournal) FindMessage(ctx context.Context, key string) (orchestrator.Message, error) {
	f.reads.Add(1)
	return f.Journal.FindMessage(ctx, key)
}

func (f *faultyJournal) LoadCard(ctx context.Context, key string) ([]byte, error) {
	f.reads.Add(1)
	return f.Journal.LoadCard(ctx, key)
}

func (f *faultyJournal) SaveMessage(ctx context.Context, m orchestrator.Message) error {
	if f.fails(m.State) {
		return errors.New("the disk is full")
	}
	return f.Journal.SaveMessage(ctx, m)
}

// withScreen runs test with a Screen in a fake chat, under a fake clock.
func withScreen(t *testing.T, test func(t *testing.T, s *Screen, chat *bottest.Chat, journal *faultyJournal)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		chat, out := bottest.NewChat(t), bottest.NewOutbox()
		journal, log := &faultyJournal{
			Journal: bottest.NewJournal(), fails: func(orchestrator.SendState) bool { return false },
		}, slog.New(slog.DiscardHandler)
		s := New(Options{Messages: message.New(out, chat, journal, nil, log), Journal: journal, Log: log, Now: time.Now})
		s.Attach(struct{ Service }{})
		test(t, s, chat, journal)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := out.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
}

func openApproval() orchestrator.Approval {
	return orchestrator.Approval{
		ID: "1", Nonce: "n", Decision: orchestrator.Decision{State: orchestrator.ApprovalOpen},
		ApprovalRequest: orchestrator.ApprovalRequest{Turn: "turn1", Conversation: orchestrator.ConversationID{Chat: 7}, Agent: "claude",
			Request: &cli.ApprovalAsked{ID: "a", Tool: "Bash", Effect: shell, Detail: "make"}},
	}
}

// The screen reads the database only for an approval that a previous process may have shown.
func TestANewApprovalIsShownWithoutReading(t *testing.T) {
	for _, isNew := range []bool{true, false} {
		withScreen(t, func(t *testing.T, s *Screen, chat *bottest.Chat, journal *faultyJournal) {
			s.Show(openApproval(), isNew)
			synctest.Wait()
			if reads := journal.reads.Load(); chat.Count("send") != 1 || (reads == 0) != isNew {
				t.Errorf("an approval with isNew = %v was sent %d times after %d reads", isNew, chat.Count("send"), reads)
			}
		})
	}
}

// An approval that cannot be loaded affects only the messages of its own chat.
func TestAnApprovalThatCannotBeLoaded(t *testing.T) {
	withScreen(t, func(t *testing.T, s *Screen, _ *bottest.Chat, journal *faultyJournal) {
		unreadable := func(on bool) {
			journal.Mu.Lock()
			defer journal.Mu.Unlock()
			journal.Unreadable = on
		}
		unreadable(true)
		s.Show(openApproval(), false)
		for chat, want := range map[int64]Handling{7: MarkHandled, 8: TreatAsPrompt} {
			in := orchestrator.ConversationID{Chat: chat}
			m := Message{Conversation: in, User: 7, Text: "go on", Private: true}
			if o := s.Reply(t.Context(), m); o.Handling != want {
				t.Errorf("a message in chat %d: %+v", chat, o)
			}
		}
		unreadable(false)
		time.Sleep(5 * time.Minute)
	})
}

// The screen sends an approval that could not be recorded as soon as recording works: the agent waits for it.
func TestAnApprovalThatCouldNotBeRecordedIsShownLater(t *testing.T) {
	withScreen(t, func(t *testing.T, s *Screen, chat *bottest.Chat, journal *faultyJournal) {
		var full atomic.Bool
		full.Store(true)
		journal.fails = func(orchestrator.SendState) bool { return full.Load() }
		s.Show(openApproval(), false)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := chat.Count("send"); n != 0 {
			t.Errorf("%d sends that a restart would not know of", n)
		}
		full.Store(false)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := chat.Count("send"); n != 1 || !strings.Contains(chat.Text(), "May Claude run this command?") {
			t.Errorf("%d sends, the chat shows\n%s", n, chat.Text())
		}
	})
}

// The screen shows a decision that arrives while the approval is being sent, even if it could not record the message.
func TestADecisionWhileTheApprovalIsSent(t *testing.T) {
	withScreen(t, func(t *testing.T, s *Screen, chat *bottest.Chat, journal *faultyJournal) {
		journal.fails = func(state orchestrator.SendState) bool { return state == orchestrator.Sent }
		chat.Delay = time.Second
		a := openApproval()
		s.Show(a, false)
		synctest.Wait()
		a.State = orchestrator.ApprovalAllowed
		s.Show(a, false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !strings.Contains(chat.Text(), "✅ Allowed.") || strings.Contains(chat.Text(), "[") {
			t.Errorf("the chat shows\n%s", chat.Text())
		}
	})
}

// A group may move while its approval is being sent or edited. The approval is then edited once more: Telegram's answer
// names the new group.
func TestAGroupThatMovesDuringACall(t *testing.T) {
	for method, shown := range map[string]bool{"send": false, "edit": true} {
		t.Run(method, func(t *testing.T) {
			withScreen(t, func(t *testing.T, s *Screen, chat *bottest.Chat, _ *faultyJournal) {
				a := openApproval()
				if shown {
					s.Show(a, false)
					time.Sleep(time.Minute)
					a.Request = &cli.ApprovalAsked{ID: "a", Tool: "Bash", Effect: shell, Detail: "make all"}
				}
				chat.Mu.Lock()
				chat.Delay = time.Second
				chat.Mu.Unlock()
				s.Show(a, false)
				for chat.Count(method) == 0 {
					time.Sleep(time.Millisecond)
				}
				edits := chat.Count("edit")
				s.MoveGroup(a.Conversation.Chat)
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := chat.Count("edit"); n != edits+1 {
					t.Errorf("%d edits, want %d", n, edits+1)
				}
			})
		})
	}
}

// deafService is a service whose agent takes no decision.
type deafService struct{ Service }

func (deafService) Decide(
	context.Context, orchestrator.ApprovalID, string, orchestrator.Press, orchestrator.Verdict,
) (orchestrator.Approval, error) {
	a := openApproval()
	a.State = orchestrator.ApprovalAllowed
	return a, orchestrator.ErrNotTold
}

// A press on an approval whose agent just ended is answered with that.
func TestADecisionThatDoesNotReachTheAgent(t *testing.T) {
	withScreen(t, func(t *testing.T, s *Screen, _ *bottest.Chat, _ *faultyJournal) {
		s.Attach(deafService{})
		e, err := s.enter(t.Context(), openApproval())
		if err != nil {
			t.Fatal(err)
		}
		allow := orchestrator.Verdict{Choice: orchestrator.AllowOnce}
		answer, err := s.decideByPress(t.Context(), e, openApproval(), Press{}, allow)
		if want := s.o.Lang.Of(7).Text("approval.not-told"); err != nil || answer != want {
			t.Errorf("the press was answered %q, %v", answer, err)
		}
	})
}

// A user who may not decide learns who may, if the names are known and few.
func TestUsersWhoMayDecideAreNamed(t *testing.T) {
	names := &tgapi.ChatNames{}
	for user, name := range map[orchestrator.PersonID]string{1: "Ann", 2: "Bob", 3: "Cem", 4: "Dee"} {
		names.LearnUser(user, name)
	}
	const unnamed, unnamedHint = "another user has to", "waiting for another user's answer"
	for _, tc := range []struct {
		approvers  []orchestrator.PersonID
		text, hint string
	}{
		{[]orchestrator.PersonID{1}, "Only Ann can answer this.", "waiting for Ann to answer its question above."},
		{[]orchestrator.PersonID{2, 3}, "Only these users can answer this: Bob, Cem.", "waiting for Bob, Cem"},
		{[]orchestrator.PersonID{1, 7}, unnamed, unnamedHint},
		{[]orchestrator.PersonID{1, 2, 3, 4}, unnamed, unnamedHint},
	} {
		a := openApproval()
		a.Approvers = tc.approvers
		s := New(Options{Names: names})
		s.entries[a.ID] = &entry{id: a.ID, conv: a.Conversation, approval: a}
		if got := s.notApprover(lang.Printer{}, a); !strings.Contains(got, tc.text) {
			t.Errorf("users %v: %q, want %q", tc.approvers, got, tc.text)
		}
		if got := s.WaitingHint(a.Conversation, 9); !strings.Contains(got, tc.hint) {
			t.Errorf("users %v: the hint is %q, want %q", tc.approvers, got, tc.hint)
		}
		if got := s.WaitingHint(a.Conversation, tc.approvers[0]); !strings.Contains(got, "your answer") {
			t.Errorf("the hint of a user who can answer is %q", got)
		}
	}
}
