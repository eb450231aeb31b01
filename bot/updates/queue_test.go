package updates

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"ductor/orchestrator"
)

func TestContentThatWasDroppedIsNotCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newQueues(slog.New(slog.DiscardHandler), time.Minute)
		slow, goOn := make(chan struct{}), make(chan struct{})
		committed := true
		k.content = func(_ context.Context, l *queue, t *task) {
			l.goSlow(t)
			close(slow)
			<-goOn // its event arrived at the same moment as the abort
			committed = l.commit(t)
		}
		k.enqueue(&task{class: classContent, updates: []int64{1}, content: &Message{}})
		<-slow
		var dropped []int64
		k.enqueue(&task{class: classUrgent, do: func(ctx context.Context, l *queue, t *task) {
			dropped, _ = l.dropContent(ctx, t, func(*Message) bool { return true })
		}})
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		if committed || !slices.Equal(dropped, []int64{1}) {
			t.Errorf("committed %v, dropped %v", committed, dropped)
		}
		k.stop(t.Context())
	})
}

func TestAQueueIsForgottenWhenItIsEmpty(t *testing.T) {
	k := newQueues(slog.New(slog.DiscardHandler), time.Minute)
	for chat := range int64(3) {
		done := make(chan struct{})
		k.enqueue(&task{conv: orchestrator.ConversationID{Chat: chat}, class: classControl, do: func(context.Context, *queue, *task) { close(done) }})
		<-done
	}
	k.stop(t.Context())
	if n := len(k.byConversation); n > 0 {
		t.Errorf("%d queues of conversations are left", n)
	}
}
