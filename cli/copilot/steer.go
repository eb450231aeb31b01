package copilot

import (
	"context"
	"errors"

	"ductor/cli"
	"ductor/cli/rpc"
)

// Steer implements cli.Steerer. Copilot passes the message to its model after the running tools, or else after the
// current answer. The turn continues until the model has handled the message.
func (s live) Steer(ctx context.Context, req cli.Request) error {
	if f := refused(req); f != nil {
		return f
	}
	t, ok := s.Running().(*liveTurn)
	if !ok {
		return cli.ErrNoTurn
	}
	m, _ := t.p.added.Add("", req.Turn) // Copilot chooses the ID of the message
	if m == nil {
		return cli.ErrNoTurn
	}
	defer t.Check() // check again whether the turn is over
	var reply struct {
		ID string `json:"messageId"`
	}
	err := t.s.server.call(ctx, "session.send", promptParams(t.s.id, req, "immediate"), &reply)
	var rejected *rpc.Error
	switch {
	case errors.As(err, &rejected):
		return m.Rejected()
	case err != nil:
		return m.Lost(ctx, err)
	}
	return m.Accepted(reply.ID)
}
