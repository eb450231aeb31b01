package turn

import (
	"slices"
	"sync"

	"ductor/cli"
)

// Added are the messages that are sent into a turn while it runs, by names of the dialect's. The zero value has none. Safe for
// concurrent use.
type Added struct {
	mu   sync.Mutex
	all  []added // in order
	over bool    // the turn takes no more
}

type added struct {
	id    string
	turn  cli.TurnID // that the message is in the queue of the user; empty if that is not known
	state addedState
}

type addedState int

const (
	waits addedState = iota // the agent's model has not taken it up
	takenUp
	givenBack
)

// Add takes a message that is about to be sent. It is not new if it was added before. A turn that is over takes none.
func (a *Added) Add(id string, turn cli.TurnID) (isNew, over bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	isNew = !a.over && a.index(id) < 0
	if isNew {
		a.all = append(a.all, added{id: id, turn: turn})
	}
	return isNew, a.over
}

// index is that of a message, or -1. mu is held.
func (a *Added) index(id string) int {
	return slices.IndexFunc(a.all, func(m added) bool { return m.id == id })
}

// Sent says which name the agent gave a message; empty if the message did not reach it.
func (a *Added) Sent(id, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch i := a.index(id); {
	case i < 0:
	case name == "":
		a.all = slices.Delete(a.all, i, i+1)
	default:
		a.all[i].id = name
	}
}

// Taken says that the agent's model has a message.
func (a *Added) Taken(id string) { a.become(id, takenUp) }

// GiveBack says that the agent will not take a message up any more.
func (a *Added) GiveBack(id string) { a.become(id, givenBack) }

func (a *Added) become(id string, state addedState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.index(id); i >= 0 && a.all[i].state == waits {
		a.all[i].state = state
	}
}

// All are the names of all messages, in order.
func (a *Added) All() []string { return a.names(waits, takenUp, givenBack) }

// Waiting are the names of those that the agent's model has not taken up, in order.
func (a *Added) Waiting() []string { return a.names(waits) }

func (a *Added) names(states ...addedState) (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.all {
		if slices.Contains(states, m.state) {
			names = append(names, m.id)
		}
	}
	return names
}

// Unread are the messages that the agent gave back, for Result.Unread.
func (a *Added) Unread() (turns []cli.TurnID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.all {
		if m.state == givenBack && m.turn != "" {
			turns = append(turns, m.turn)
		}
	}
	return turns
}

// End says whether the turn may end: no message waits. Then it takes no more.
func (a *Added) End() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = !a.waiting()
	return a.over
}

// Close ends the turn for messages, whatever waits, and says whether any does.
func (a *Added) Close() (left bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.waiting()
}

// waiting says whether a message waits. mu is held.
func (a *Added) waiting() bool {
	return slices.ContainsFunc(a.all, func(m added) bool { return m.state == waits })
}
