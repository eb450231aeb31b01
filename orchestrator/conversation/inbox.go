package conversation

import (
	"slices"
	"sync"
)

// inbox handles messages one after the other, in the order they came, on one goroutine. The goroutine exists while
// messages wait; whoever sends one waits for it, so it never outlives its senders. The state that messages change belongs to it.
type inbox struct {
	mu       sync.Mutex // of messages alone: no message is handled under it
	messages []message  // the first is being handled
}

// message is a function to call on the goroutine of an inbox.
type message struct {
	handle  func()
	handled chan struct{}
}

// post adds a message. The channel is closed once the message is handled.
func (in *inbox) post(handle func()) <-chan struct{} {
	m := message{handle, make(chan struct{})}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = append(in.messages, m)
	if len(in.messages) == 1 {
		go in.serve()
	}
	return m.handled
}

func (in *inbox) serve() {
	for m, ok := in.first(); ok; m, ok = in.next() {
		m.handle()
		close(m.handled)
	}
}

func (in *inbox) first() (message, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.messages[0], true
}

// next gives the message after the one that was handled; false if none waits, which ends the goroutine.
func (in *inbox) next() (message, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = slices.Delete(in.messages, 0, 1)
	if len(in.messages) == 0 {
		return message{}, false
	}
	return in.messages[0], true
}
