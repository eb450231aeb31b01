package copilot

import (
	"context"

	"github.com/google/uuid"

	"ductor/cli"
)

// Steer implements cli.Steerer. Copilot passes the message to its model after the running tools, or else after the
// current answer. The turn continues until the model has handled the message.
func (s live) Steer(ctx context.Context, req cli.Request) error {
	if f := refused(req); f != nil {
		return f
	}
	t, ok := s.Running().(*liveTurn)
	id := uuid.NewString()
	if !ok {
		return cli.ErrNoTurn
	}
	if _, over := t.added.Add(id, req.Turn); over {
		return cli.ErrNoTurn
	}
	var reply struct {
		ID string `json:"messageId"`
	}
	err := t.s.server.call(ctx, "session.send", promptParams(t.s.id, req, "immediate"), &reply)
	t.added.Sent(id, reply.ID)
	t.Check() // check again whether the turn is over
	if err != nil {
		return callFailure(err)
	}
	return nil
}

// heard reports whether the model has received every message that users added to the turn. If it returns true, users
// can add no further messages.
func (t *liveTurn) heard() bool {
	for _, id := range t.added.Waiting() {
		if t.p.seen[id] {
			t.added.Taken(id)
		}
	}
	return t.added.End()
}
