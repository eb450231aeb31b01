package message

import (
	"context"
	"sync"

	"ductor/orchestrator"
)

// flights counts the requests to send a message that are in progress in each chat. A user may see such a message and
// reply to it before ductor has stored the message's ID.
type flights struct {
	mu     sync.Mutex
	chats  map[int64]int
	landed chan struct{} // method end closes and replaces this channel
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

// next returns a channel that is closed when the next request to send a message to the chat ends. It returns nil if no
// such request is in progress.
func (f *flights) next(chat int64) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.chats[chat] == 0 {
		return nil
	}
	return f.landed
}

// Await waits until the database contains the message with the given ID. It returns early if no request to send a
// message to the chat is in progress, or if ctx is done.
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
