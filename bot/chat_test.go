package bot

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/approval"
	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/cli"
	"ductor/orchestrator"
)

// A queue card mentions that the agent asks only as long as it does.
func TestAHintOfAnApprovalThatIsDecidedAsTheCardIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, out := bottest.NewChat(t), bottest.NewOutbox()
		journal, log := bottest.NewJournal(), slog.New(slog.DiscardHandler)
		messages := message.New(out, w, journal, nil, log)
		approvals := approval.New(approval.Options{Messages: messages, Journal: journal, Log: log, Now: time.Now})
		approvals.Attach(NewDeskFake(newJournalFake()))
		chat := &Chat{approvals: approvals, queue: newQueueCards(messages, nil, nil)}
		approval := orchestrator.Approval{
			ID: "1", Nonce: "n", Decision: orchestrator.Decision{State: orchestrator.ApprovalOpen},
			ApprovalRequest: orchestrator.ApprovalRequest{Turn: "turn1", Conversation: orchestrator.ConversationID{Chat: 7}, Agent: "claude",
				Request: &cli.ApprovalAsked{ID: "a", Tool: "Bash", Detail: "make"}},
			ApprovalTerms: orchestrator.ApprovalTerms{Approvers: []orchestrator.PersonID{7}},
		}
		chat.ShowApproval(approval, false)
		waits := orchestrator.Turn{ID: "turn2", Prompt: orchestrator.Prompt{Conversation: approval.Conversation}}
		approval.State = orchestrator.ApprovalAllowed
		var decided sync.WaitGroup
		chat.queue.queued(waits, 1, func() string {
			hint := approvals.WaitingHint(approval.Conversation, 7)
			if chat.queue.mu.TryLock() { // a decision at this moment must find the card
				t.Error("a decision can come between the hint and the card")
				chat.queue.mu.Unlock()
			}
			decided.Go(func() { chat.ShowApproval(approval, false) })
			return hint
		})
		decided.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if strings.Contains(w.Text(), "is waiting for your answer") {
			t.Errorf("nothing is asked, and the chat shows\n%s", w.Text())
		}
		approval.ID, approval.State = "2", orchestrator.ApprovalOpen
		chat.ShowApproval(approval, false)
		for i := range 9 { // more than the cards that move up at once
			id := orchestrator.Turn{ID: cli.TurnID(rune('a' + i)), Prompt: waits.Prompt}
			chat.queue.queued(id, i+2, func() string { return approvals.WaitingHint(approval.Conversation, 7) })
		}
		time.Sleep(time.Minute)
		if n := strings.Count(w.Text(), "is waiting for your answer"); n != 9 {
			t.Errorf("%d cards mention the question:\n%s", n, w.Text())
		}
		approval.State = orchestrator.ApprovalAllowed
		chat.ShowApproval(approval, false)
		time.Sleep(time.Minute)
		if strings.Contains(w.Text(), "is waiting for your answer") {
			t.Errorf("it is decided, and the chat shows\n%s", w.Text())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := out.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
}
