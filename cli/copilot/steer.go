package copilot

import (
	"context"
	"slices"
	"sync"

	"ductor/cli"
)

// Steer adds a message to the turn that runs. Copilot hands it to its model after the tools that run now, or where
// none do, when it has answered; the turn goes on until it was.
func (s *live) Steer(ctx context.Context, req cli.Request) error {
	if f := refused(req); f != nil {
		return f
	}
	t := s.running()
	if t == nil || !t.added.hold() {
		return cli.ErrNoTurn
	}
	var reply struct {
		ID string `json:"messageId"`
	}
	err := t.server.call(ctx, "session.send", promptParams(t.p.session.AgentSessionID, req, "immediate"), &reply)
	t.added.release(reply.ID)
	t.in.Put(item{}, 0) // the turn may have been waiting for nothing else
	if err != nil {
		return callFailure(err)
	}
	return nil
}

// addedMessages are those that are sent into a turn. Safe for concurrent use.
type addedMessages struct {
	mu      sync.Mutex
	closed  bool
	sending int
	unheard []string // messages that the process has and the model has not
}

// hold keeps the turn from ending while a message is on its way; false if it has ended.
func (a *addedMessages) hold() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.sending++
	}
	return !a.closed
}

// release says that a message arrived, under the name id, or did not.
func (a *addedMessages) release(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sending--
	if id != "" {
		a.unheard = append(a.unheard, id)
	}
}

// heard says whether the model, which has seen what is named so, got every message. Once it has, the turn takes no more.
func (a *addedMessages) heard(seen map[string]bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unheard = slices.DeleteFunc(a.unheard, func(id string) bool { return seen[id] })
	a.closed = a.sending == 0 && len(a.unheard) == 0
	return a.closed
}

// refuse ends the turn for messages, whatever was heard of them.
func (a *addedMessages) refuse() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}
