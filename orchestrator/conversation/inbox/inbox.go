// Package inbox runs functions one at a time. It protects the state of a conversation without holding a lock while a
// function runs.
package inbox

import (
	"slices"
	"sync"
)

// Inbox runs functions one at a time, in the order of their arrival. It passes the owner of the Inbox to each function.
//
// The caller of Handle waits until its function has run. If the inbox is empty, the caller runs the function itself,
// which is faster than another goroutine. If more functions arrive in the meantime, a new goroutine runs them and then
// ends.
type Inbox[T any] struct {
	owner  *T
	joined *Inbox[T] // the argument of Join, or nil; only the functions in messages may access this field

	mu       sync.Mutex // guards messages only; not held while a function runs
	messages []message  // messages[0] is being handled
}

// New returns an empty Inbox.
func New[T any](owner *T) Inbox[T] { return Inbox[T]{owner: owner} }

type message struct {
	call    func()
	handled chan struct{}
}

// Handle runs f after all earlier functions, and returns when f has returned. If the inbox has joined another one, f
// runs there and gets the owner of that inbox.
func (in *Inbox[T]) Handle(f func(owner *T)) {
	var joined *Inbox[T]
	in.handle(func() {
		if joined = in.joined; joined == nil {
			f(in.owner)
		}
	})
	if joined != nil {
		joined.Handle(f)
	}
}

// Join makes the inbox pass all later functions to another inbox. Only a function that this inbox runs may call Join.
func (in *Inbox[T]) Join(other *Inbox[T]) { in.joined = other }

func (in *Inbox[T]) handle(f func()) {
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
func (in *Inbox[T]) add(m message) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = append(in.messages, m)
	return len(in.messages) == 1
}

func (in *Inbox[T]) serve(m message) {
	for ok := true; ok; m, ok = in.next() {
		m.call()
		close(m.handled)
	}
}

// next removes the first message, whose function has run. It returns the next message, or false if the inbox is empty.
func (in *Inbox[T]) next() (message, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = slices.Delete(in.messages, 0, 1)
	if len(in.messages) == 0 {
		return message{}, false
	}
	return in.messages[0], true
}
