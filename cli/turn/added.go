package turn

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ductor/cli"
)

// Added contains the messages that users sent during a turn, and that ductor adds to the turn. A provider sends such a
// message in its method Steer (see cli.Steerer), and reports to Added what it learns about the message. Added
// determines the result of Steer:
//
//   - If the agent has the message, Steer returns nil. If the model then never reads the message, Settle lists it.
//   - If the model will never read the message, and Steer has not returned yet, Steer returns ErrNoTurn.
//   - If neither is known, Steer returns another error.
//
// The zero value is empty. Safe for concurrent use.
type Added struct {
	mu     sync.Mutex
	all    []*Message // all messages, in the order of the calls of Add
	closed bool       // the turn accepts no more messages
	early  []string   // names for which Read found no message; Accepted checks them
}

// Message is a message in an Added. After Add, the caller sends the message to the agent. Then the caller calls
// Accepted, Rejected or Lost, and returns their error from Steer.
type Message struct {
	in      *Added
	name    string     // the agent's name of the message; empty if it is not known
	turn    cli.TurnID // turn ID of the message, for Result.Steered; empty if it is not known
	state   messageState
	settled chan struct{} // closed when the message is no longer in flight
}

type messageState string

const (
	inFlight messageState = "in flight" // it is not known yet whether the agent has the message; Steer has not returned
	accepted messageState = "accepted"  // the agent has the message, but its model has not read it; Steer returns nil
	read     messageState = "read"      // the model has read the message; Steer returns nil if it still runs
	unread   messageState = "unread"    // the model will never read the message, and Settle lists it; Steer returns nil
	dropped  messageState = "dropped"   // the model will never read the message; Steer returns ErrNoTurn
	unknown  messageState = "unknown"   // it is unknown whether the agent has the message; Steer returns another error
	adopted  messageState = "adopted"   // like unknown, but the previous process of ductor sent the message
)

// Add adds a message that the caller is about to send. name is the agent's name of the message, or empty if the agent
// chooses the name. Add returns nil if the turn accepts no more messages. If the turn already contains a message with
// this name, Add returns that message, and isNew is false.
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

// Accepted records that the agent has the message. name is the agent's name of the message. Accepted returns ErrNoTurn
// if the model will not read the message.
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

// Lost records that the agent did not answer whether it has the message. err is the reason. Lost waits until Read or
// another method reports what happened to the message, or until ctx is done.
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
	// Without a name, it is unknown which message the model has read.
	case name == "":
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
// list adopted messages as unread, because the model may have read them before.
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

// Expire makes the turn accept no more messages, and drops the messages in flight. Call Expire at the end of a turn of
// an agent that accepts messages only during a turn, and whose model reads all accepted messages before the turn ends.
// Such an agent has not accepted the messages in flight.
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

// End reports whether the turn may end, because the model will read no further message. If End returns true, the turn
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

// waits reports whether the model may still read a message. Read cannot find a message without a name, so waits counts
// such a message only while it is in flight. The caller holds mu.
func (a *Added) waits() bool {
	return slices.ContainsFunc(a.all, func(m *Message) bool {
		return m.state == inFlight || (m.state == accepted || m.state == unknown || m.state == adopted) && m.name != ""
	})
}

// Settle makes the turn accept no more messages. It returns the turn IDs of the messages that the model has read, and
// of those that the agent has but the model will never read. If a message is still in flight, its state becomes
// unknown.
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
