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

// inChat returns a message of a chat that came with an update.
func inChat(chat, update int64) *Message {
	return &Message{Press: orchestrator.Press{
		Conversation: orchestrator.ConversationID{Chat: chat}, Updates: []int64{update},
	}}
}

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
		k.enqueue(&task{class: classUrgent, updates: []int64{2}, do: func(ctx context.Context, l *queue, t *task) {
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
		k.enqueue(&task{conv: orchestrator.ConversationID{Chat: chat}, class: classControl, updates: []int64{chat + 1}, do: func(context.Context, *queue, *task) { close(done) }})
		<-done
	}
	k.stop(t.Context())
	if n := len(k.byConversation); n > 0 {
		t.Errorf("%d queues of conversations are left", n)
	}
}

// An abort drops the prompts that came before it, also those that are taken up again while it waits. It spares prompts
// that came after it.
func TestAnAbortDropsWhatCameBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newQueues(slog.New(slog.DiscardHandler), time.Minute)
		block := make(chan struct{})
		var ran []int64
		k.content = func(_ context.Context, q *queue, t *task) {
			if t.updates[0] == 4 {
				<-block
				return
			}
			ran = append(ran, t.updates[0])
		}
		content := func(update int64) *task {
			return &task{class: classContent, updates: []int64{update}, content: inChat(0, update)}
		}
		k.enqueue(content(4))
		synctest.Wait()
		var dropped []int64
		prompts := 0
		k.enqueue(&task{class: classUrgent, updates: []int64{6}, do: func(ctx context.Context, q *queue, t *task) {
			a := Abort{In: inChat(0, 6), queue: q, task: t}
			dropped, prompts = a.Drop(ctx, func(*Message) bool { return true })
		}})
		synctest.Wait()
		for _, update := range []int64{5, 7, 2} {
			k.enqueue(content(update))
		}
		synctest.Wait()
		close(block)
		synctest.Wait()
		slices.Sort(dropped)
		if !slices.Equal(dropped, []int64{2, 5}) || prompts != 2 {
			t.Errorf("dropped %v, %d prompts", dropped, prompts)
		}
		if !slices.Equal(ran, []int64{7}) {
			t.Errorf("ran %v", ran)
		}
		k.stop(t.Context())
	})
}
