package bot

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/cli"
	"ductor/orchestrator"
)

// forgetful is a desk whose store is in trouble from time to time.
type forgetful struct {
	*deskFake
	fails func(orchestrator.SendState) bool
}

func (d *forgetful) AskShown(_ context.Context, _ orchestrator.AskID, state orchestrator.SendState, _ int) error {
	if d.fails(state) {
		return errors.New("the disk is full")
	}
	return nil
}

// onBoard shows asks on a wall, under a fake clock.
func onBoard(t *testing.T, play func(t *testing.T, b *askBoard, w *bottest.Chat, d *forgetful)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, out := bottest.NewChat(t), bottest.NewOutbox()
		d := &forgetful{deskFake: NewDeskFake(newJournalFake()), fails: func(orchestrator.SendState) bool { return false }}
		b := newAskBoard(out, w, bottest.NewJournal(), slog.New(slog.DiscardHandler))
		b.attach(d)
		play(t, b, w, d)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := out.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
}

func openAsk() orchestrator.Ask {
	return orchestrator.Ask{
		ID: "1", Turn: "turn1", Conversation: orchestrator.ConversationID{Chat: 7}, Agent: "claude", Nonce: "n",
		State: orchestrator.AskOpen, Approval: &cli.ApprovalAsked{ID: "a", Tool: "Bash", Detail: "make"},
	}
}

// An ask that could not be recorded before it is sent is sent once it can be: the agent waits for it.
func TestAnAskThatCouldNotBeRecordedIsShownLater(t *testing.T) {
	onBoard(t, func(t *testing.T, b *askBoard, w *bottest.Chat, d *forgetful) {
		var full atomic.Bool
		full.Store(true)
		d.fails = func(orchestrator.SendState) bool { return full.Load() }
		b.ShowAsk(openAsk())
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := w.Count("send"); n != 0 {
			t.Errorf("%d sends that a restart would not know of", n)
		}
		full.Store(false)
		time.Sleep(askRetryMost)
		synctest.Wait()
		if n := w.Count("send"); n != 1 || !strings.Contains(w.Text(), "May Claude use Bash?") {
			t.Errorf("%d sends, the chat shows\n%s", n, w.Text())
		}
	})
}

// A decision that comes while the ask is on its way is shown, also if it could not be recorded that the ask is there.
func TestADecisionWhileTheAskIsOnItsWay(t *testing.T) {
	onBoard(t, func(t *testing.T, b *askBoard, w *bottest.Chat, d *forgetful) {
		d.fails = func(state orchestrator.SendState) bool { return state == orchestrator.Sent }
		w.Delay = time.Second
		ask := openAsk()
		b.ShowAsk(ask)
		synctest.Wait()
		ask.State = orchestrator.AskAllowed
		b.ShowAsk(ask)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !strings.Contains(w.Text(), "✅ Allowed.") || strings.Contains(w.Text(), "[") {
			t.Errorf("the chat shows\n%s", w.Text())
		}
	})
}

// A card that waits in the queue says that the agent asks only as long as it does.
func TestAHintOfAnAskThatIsDecidedAsTheCardIsMade(t *testing.T) {
	onBoard(t, func(t *testing.T, b *askBoard, w *bottest.Chat, _ *forgetful) {
		chat := &Chat{asks: b, queue: newQueueCards(b.out, w, bottest.NewJournal(), slog.New(slog.DiscardHandler))}
		ask := openAsk()
		chat.ShowAsk(ask)
		waits := orchestrator.Turn{ID: "turn2", Prompt: orchestrator.Prompt{Conversation: ask.Conversation}}
		ask.State = orchestrator.AskAllowed
		var decided sync.WaitGroup
		chat.queue.queued(waits, 1, func() string {
			hint := chat.asks.hint(ask.Conversation)
			if chat.queue.mu.TryLock() { // what is decided now must find the card
				t.Error("a decision can come between the hint and the card")
				chat.queue.mu.Unlock()
			}
			decided.Go(func() { chat.ShowAsk(ask) })
			return hint
		})
		decided.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if strings.Contains(w.Text(), "waits for an answer") {
			t.Errorf("nothing is asked, and the chat shows\n%s", w.Text())
		}
	})
}
