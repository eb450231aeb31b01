package turn

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ductor/cli"
)

// Added contains the messages that users send to the agent during a turn. The provider's method Steer (see cli.Steerer)
// calls Add, sends the message to the agent, and then calls Accepted, Rejected or Lost. Steer returns their result:
//
//   - nil if the agent has the message. If the model then never reads the message, Settle lists the message as unread.
//   - ErrNoTurn if the model will never read the message.
//   - another error if it is unknown whether the agent has the message.
//
// The zero value is empty. Safe for concurrent use.
type Added struct {
	mu     sync.Mutex
	all    []*Message // all messages, in the order of the calls of Add
	closed bool       // the turn accepts no more messages
	early  []string   // names of messages that the model read before Accepted set the name
}

// Message is a message that a user sends during a turn. Add creates it.
type Message struct {
	in      *Added
	name    string     // name by which the agent identifies the message; empty if it is not known
	turn    cli.TurnID // turn ID of the message, for Result.Steered; empty if it is not known
	state   messageState
	settled chan struct{} // closed when the message is no longer in flight
}

type messageState string

const (
	inFlight messageState = "in flight" // it is not known yet whether the agent has the message; Steer has not returned
	accepted messageState = "accepted"  // the agent has the message, but its model has not read it; Steer returns nil
	read     messageState = "read"      // the model has read the message; Steer returns nil if Steer is still running
	unread   messageState = "unread"    // the agent has the message, but its model never reads it; Steer returns nil
	dropped  messageState = "dropped"   // the model will never read the message; Steer returns ErrNoTurn
	unknown  messageState = "unknown"   // it is unknown whether the agent has the message; Steer returns an error
	adopted  messageState = "adopted"   // the previous process of ductor sent the message; the agent may have it
)

// Add adds a message that the caller is about to send. The agent identifies the message by name. name is empty if the
// agent chooses the name. Add returns nil if the turn accepts no more messages. If the turn already contains a message
// with this name, Add returns that message, and isNew is false.
func (a *Added) Add(name string, turn cli.TurnID) (m *Message, isNew bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, false
	}
	if m := a.find(name); m != nil {
		return m, false
	}
	m = &Message{in: a, name: name, turn: turn, state: inFlight, settled: make(chan struct{})}
	a.all = append(a.all, m)
	return m, true
}

// Adopt adds a message that the previous process of ductor sent. It is unknown whether the agent has the message, until
// its model reads the message, or until the agent drops it. If the agent drops the message, Settle lists it.
func (a *Added) Adopt(name string, turn cli.TurnID) {
	m, isNew := a.Add(name, turn)
	if !isNew {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	m.become(adopted)
}

// find returns the message with this name, or nil. The caller holds mu.
func (a *Added) find(name string) *Message {
	i := slices.IndexFunc(a.all, func(m *Message) bool { return name != "" && m.name == name && m.state != dropped })
	if i < 0 {
		return nil
	}
	return a.all[i]
}

// become changes the state. It closes settled when the message is no longer in flight. The caller holds mu.
func (m *Message) become(state messageState) {
	if m.state == inFlight && state != inFlight {
		close(m.settled)
	}
	m.state = state
}

// Accepted records that the agent has the message and identifies it by name. Accepted returns ErrNoTurn if the model
// will not read the message.
func (m *Message) Accepted(name string) error {
	m.in.mu.Lock()
	defer m.in.mu.Unlock()
	m.name = name
	switch {
	case slices.Contains(m.in.early, name):
		m.become(read)
	case m.state == dropped:
		return cli.ErrNoTurn
	case m.state == inFlight:
		m.become(accepted)
	}
	return nil
}

// Rejected records that the agent did not accept the message, and returns ErrNoTurn. If the model has read the message
// nevertheless, Rejected records nothing and returns nil.
func (m *Message) Rejected() error {
	m.in.mu.Lock()
	defer m.in.mu.Unlock()
	if m.state == read {
		return nil
	}
	m.become(dropped)
	return cli.ErrNoTurn
}

// Lost records that the agent did not confirm the message, and that err is the reason. Before that, Lost waits until
// another method, such as Read, records what happened to the message, or until ctx is done. Lost returns nil if the
// model has read the message, and ErrNoTurn if the model will never read it.
func (m *Message) Lost(ctx context.Context, err error) error {
	select {
	case <-m.settled:
	case <-ctx.Done():
	}
	m.in.mu.Lock()
	defer m.in.mu.Unlock()
	switch m.state {
	case read:
		return nil
	case dropped:
		return cli.ErrNoTurn
	}
	m.become(unknown)
	// Do not wrap err: if err is ErrNoTurn, callers of Steer would conclude that the model will never read the message.
	return fmt.Errorf("it is unknown whether the agent has the message: %v", err)
}

// Read records that the model has read a message.
func (a *Added) Read(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m := a.find(name); {
	case name == "": // an empty name identifies no message
	case m == nil:
		a.early = append(a.early, name)
	case m.state != unread:
		m.become(read)
	}
}

// Drop records that the agent received the message with this name, but that its model will never read it.
func (a *Added) Drop(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m := a.find(name); {
	case m == nil:
	case m.state == adopted:
		m.become(unread)
	default:
		m.drop()
	}
}

// DropAll records that the model will read no more messages, for example because the process has ended. Settle does not
// list a message of Adopt as unread, because the model may have read it before ductor restarted.
func (a *Added) DropAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, m := range a.all {
		m.drop()
	}
}

// drop records that the model will never read the message. The caller holds mu.
func (m *Message) drop() {
	switch m.state {
	case accepted:
		m.become(unread)
	case inFlight, unknown, adopted:
		m.become(dropped)
	}
}

// Expire makes the turn accept no more messages, and drops the messages in flight. Call Expire at the end of a turn,
// but only for an agent whose model reads every message that the agent accepts during the turn. A message that is then
// still in flight was not accepted.
func (a *Added) Expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, m := range a.all {
		if m.state == inFlight {
			m.become(dropped)
		}
	}
}

// names returns the names of the messages in these states, in order.
func (a *Added) names(states ...messageState) (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.all {
		if slices.Contains(states, m.state) {
			names = append(names, m.name)
		}
	}
	return names
}

// Sent calls f for all messages that the agent may have, in order, with their names and turn IDs.
func (a *Added) Sent(f func(name string, turn cli.TurnID)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.all {
		if m.state != dropped {
			f(m.name, m.turn)
		}
	}
}

// Waiting returns the names of the messages that the model may still read, in order.
func (a *Added) Waiting() []string { return a.names(inFlight, accepted, unknown, adopted) }

// End reports whether the model will read no further message, so that the turn may end. If End returns true, the turn
// accepts no more messages.
func (a *Added) End() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = a.closed || !a.waits()
	return !a.waits()
}

// Close makes the turn accept no more messages. It reports whether the model may still read messages.
func (a *Added) Close() (left bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	return a.waits()
}

// waits reports whether the model may still read a message. A message without a name counts only while it is in flight,
// because Read cannot report it later. The caller holds mu.
func (a *Added) waits() bool {
	return slices.ContainsFunc(a.all, func(m *Message) bool {
		return m.state == inFlight || (m.state == accepted || m.state == unknown || m.state == adopted) && m.name != ""
	})
}

// Settle makes the turn accept no more messages. It returns the turn IDs of the messages in the states read and unread.
// Messages in flight become unknown.
func (a *Added) Settle() (turns cli.Steered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, m := range a.all {
		if m.state == inFlight {
			m.become(unknown)
		}
		switch {
		case m.turn == "":
		case m.state == unread:
			turns.Unread = append(turns.Unread, m.turn)
		case m.state == read:
			turns.Read = append(turns.Read, m.turn)
		}
	}
	return turns
}
