package display

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ductor/orchestrator"
)

// slowService takes a minute to read a display mode.
type slowService struct{ reads atomic.Int32 }

func (s *slowService) Display(context.Context, orchestrator.ConversationID) (orchestrator.DisplayMode, error) {
	s.reads.Add(1)
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
		go ask(2, time.Minute)
		synctest.Wait()
		if n := service.reads.Load(); n != 2 {
			t.Errorf("%d of 2 chats are being asked", n)
		}
		ask(1, 0)
		time.Sleep(time.Hour)
	})
}
