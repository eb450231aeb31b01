// Package inbox runs functions one at a time. It protects the state of a conversation without holding a lock while a
// function runs.
package inbox

import (
	"slices"
	"sync"
)

// Inbox runs functions one at a time, in the order of their arrival. The zero value is empty.
//
// The caller of Handle waits until its function has run. If the inbox is empty, the caller runs the function itself,
// which is faster than another goroutine. If more functions arrive in the meantime, a new goroutine runs them and then
// ends.
type Inbox struct {
	mu       sync.Mutex // guards messages only; not held while a function runs
	messages []message  // the first one runs now
}

type message struct {
	call    func()
	handled chan struct{}
}

// Handle runs f after all earlier functions, and returns when f has returned.
func (in *Inbox) Handle(f func()) {
	m := message{f, make(chan struct{})}
	if !in.add(m) {
		<-m.handled
		return
	}
	m.call()
	if next, ok := in.next(); ok {
		go in.serve(next)
	}
}

// add appends a message. It returns true if the inbox was empty, so that the caller must run the message.
func (in *Inbox) add(m message) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = append(in.messages, m)
	return len(in.messages) == 1
}

func (in *Inbox) serve(m message) {
	for ok := true; ok; m, ok = in.next() {
		m.call()
		close(m.handled)
	}
}

// next removes the first message when its function has run. It returns the next message, or false after the last one.
func (in *Inbox) next() (message, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = slices.Delete(in.messages, 0, 1)
	if len(in.messages) == 0 {
		return message{}, false
	}
	return in.messages[0], true
}
