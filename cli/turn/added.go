package turn

import (
	"slices"
	"sync"

	"ductor/cli"
)

// Added contains the messages that the user sent while a turn was running, and that ductor added to it. A message has
// an ID that the provider chose. The zero value is empty. Safe for concurrent use.
type Added struct {
	mu   sync.Mutex
	all  []added // in the order of Add
	over bool    // the turn accepts no more messages
}

type added struct {
	id    string
	turn  cli.TurnID // for Result.Unread; empty if unknown
	sent  bool       // whether the message has reached the agent
	state addedState
}

type addedState int

const (
	waits addedState = iota
	takenUp
	givenBack
)

// Add adds a message. The result isNew is true if the caller must now send the message to the agent. It is false if the
// turn accepts no more messages (closed), or if Add was called before with the same ID.
func (a *Added) Add(id string, turn cli.TurnID) (isNew, closed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	isNew = !a.over && a.index(id) < 0
	if isNew {
		a.all = append(a.all, added{id: id, turn: turn})
	}
	return isNew, a.over
}

// index returns the index of a message, or -1. The caller holds mu.
func (a *Added) index(id string) int {
	return slices.IndexFunc(a.all, func(m added) bool { return m.id == id })
}

// Sent records that a message reached the agent, and replaces its ID by the agent's own ID in the parameter name. If
// name is empty, the agent did not receive the message, and Sent removes it.
func (a *Added) Sent(id, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch i := a.index(id); {
	case i < 0:
	case name == "":
		a.all = slices.Delete(a.all, i, i+1)
	default:
		a.all[i].id, a.all[i].sent = name, true
	}
}

// Taken records that the model has read a message.
func (a *Added) Taken(id string) { a.become(id, takenUp) }

// GiveBack records that the model will never read a message.
func (a *Added) GiveBack(id string) { a.become(id, givenBack) }

// ProcessEnded records that the agent will never read the messages that wait. It leaves out messages of which it is
// unknown whether they reached the agent.
func (a *Added) ProcessEnded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, m := range a.all {
		if m.state == waits && m.sent {
			a.all[i].state = givenBack
		}
	}
}

func (a *Added) become(id string, state addedState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.index(id); i >= 0 && a.all[i].state == waits {
		a.all[i].state = state
	}
}

// All returns the IDs of all messages, in order.
func (a *Added) All() []string { return a.names(waits, takenUp, givenBack) }

// Waiting returns the IDs of the messages that the model has not read, in order.
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

// Unread returns the turn IDs of the messages that the model will never read, for Result.Unread.
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

// End reports whether the turn may end: the model has read every message, or will never read it. If End returns true,
// the turn accepts no more messages.
func (a *Added) End() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = !a.waiting()
	return a.over
}

// Close makes the turn accept no more messages. It reports whether there are messages that the model has not read but
// may still read.
func (a *Added) Close() (left bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.waiting()
}

// waiting reports whether the model has still to read a message. The caller holds mu.
func (a *Added) waiting() bool {
	return slices.ContainsFunc(a.all, func(m added) bool { return m.state == waits })
}
