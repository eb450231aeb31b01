package copilot

import (
	"context"
	"slices"

	"ductor/cli"
)

// Steer adds a message to the turn that runs. Copilot hands it to its model after the tools that run now, or where
// none do, when it has answered; the turn goes on until it was.
func (s *live) Steer(ctx context.Context, req cli.Request) error {
	if f := refused(req); f != nil {
		return f
	}
	s.mu.Lock()
	t := s.turn
	s.mu.Unlock()
	if t == nil || !t.hold() {
		return cli.ErrNoTurn
	}
	params := s.message(req)
	params["mode"] = "immediate"
	var reply struct {
		ID string `json:"messageId"`
	}
	err := t.server.call(ctx, "session.send", params, &reply)
	t.release(reply.ID)
	if err != nil {
		return callFailure(err)
	}
	return nil
}

// hold keeps the turn from ending while a message is on its way; false if it has ended.
func (t *liveTurn) hold() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.steers++
	return true
}

// release says that a message arrived, under the name id, or did not.
func (t *liveTurn) release(id string) {
	t.mu.Lock()
	t.steers--
	if id != "" {
		t.unheard = append(t.unheard, id)
	}
	t.mu.Unlock()
	t.in.Wake() // the turn may have been waiting for nothing else
}

// heard says whether the model got every message. Once it has, the turn takes no more.
func (t *liveTurn) heard() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unheard = slices.DeleteFunc(t.unheard, func(id string) bool { return t.p.seen[id] })
	t.closed = t.steers == 0 && len(t.unheard) == 0
	return t.closed
}

// close ends the turn for messages, whatever was heard of them.
func (t *liveTurn) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// Decide answers what the turn asked for; see cli.Decider.
func (s *live) Decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
	s.mu.Lock()
	t := s.turn
	s.mu.Unlock()
	if t == nil {
		return cli.ErrNotAsked
	}
	return t.asks.decide(ctx, id, d)
}
