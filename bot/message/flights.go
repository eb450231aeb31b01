package message

import (
	"context"
	"sync"

	"ductor/orchestrator"
)

// flights counts the messages of each chat that were sent to Telegram but whose id is not stored yet. A user may
// already see such a message and reply to it.
type flights struct {
	mu     sync.Mutex
	chats  map[int64]int
	landed chan struct{} // closed when the next message is stored
}

func newFlights() *flights {
	return &flights{chats: make(map[int64]int), landed: make(chan struct{})}
}

func (f *flights) begin(chat int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chats[chat]++
}

func (f *flights) end(chat int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.chats[chat]--; f.chats[chat] == 0 {
		delete(f.chats, chat)
	}
	close(f.landed)
	f.landed = make(chan struct{})
}

// next returns a channel that is closed when the next message of a chat is stored, or nil if no message is being
// sent.
func (f *flights) next(chat int64) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.chats[chat] == 0 {
		return nil
	}
	return f.landed
}

// Await waits until the store contains the message with an id. It returns early if no message of the chat is being
// sent, or if ctx is done.
func (s *Messages) Await(ctx context.Context, in orchestrator.ConversationID, id int) error {
	for {
		landed := s.flights.next(in.Chat)
		if key, err := s.KeyAt(ctx, in, id); err != nil || key != "" || landed == nil {
			return err
		}
		select {
		case <-landed:
		case <-ctx.Done():
			return nil
		}
	}
}
