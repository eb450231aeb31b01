package display

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot/bottest"
	"ductor/bot/message"
	"ductor/lang"
	"ductor/orchestrator"
)

// slowService takes a minute to read a display mode.
type slowService struct{}

func (*slowService) Display(context.Context, orchestrator.ConversationID) (orchestrator.DisplayMode, error) {
	time.Sleep(time.Minute)
	return orchestrator.DisplayPlain, nil
}

func (*slowService) SetDisplay(context.Context, orchestrator.ConversationID, orchestrator.DisplayMode) error {
	return nil
}

// On a slow disk, an answer does not wait for the question that another answer asks: neither in another chat, nor in
// the same one.
func TestAnAnswerDoesNotWaitForTheQuestionOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &slowService{}
		screen := New(nil, nil)
		screen.Attach(service)
		began := time.Now()
		ask := func(chat int64, takes time.Duration) {
			if err := screen.RichWouldHelp(t.Context(), orchestrator.ConversationID{Chat: chat}); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != takes {
				t.Errorf("an answer in chat %d waited %v, want %v", chat, took, takes)
			}
		}
		go ask(1, time.Minute)
		go ask(1, time.Minute)
		ask(2, time.Minute)
		synctest.Wait()
	})
}

// unansweredService lets several answers ask a chat at the same time.
type unansweredService struct{ slowService }

func (s *unansweredService) Display(ctx context.Context,
	in orchestrator.ConversationID) (orchestrator.DisplayMode, error) {
	_, err := s.slowService.Display(ctx, in)
	return orchestrator.DisplayAsk, err
}

func TestAChatIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := bottest.NewJournal()
		messages := message.New(bottest.NewOutbox(), bottest.NewChat(t), journal, nil, slog.New(slog.DiscardHandler))
		screen := New(messages, &lang.Choices{})
		screen.Attach(&unansweredService{})
		ask := func() {
			if err := screen.RichWouldHelp(t.Context(), orchestrator.ConversationID{Chat: 1}); err != nil {
				t.Error(err)
			}
		}
		var asks sync.WaitGroup
		asks.Go(ask)
		asks.Go(ask)
		asks.Wait()
		journal.Messages[0].State = orchestrator.Sent
		ask()
		if len(journal.Messages) != 1 || journal.Messages[0].State != orchestrator.Sent {
			t.Errorf("the chat is asked with %+v", journal.Messages)
		}
	})
}
