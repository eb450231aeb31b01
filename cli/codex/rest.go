package codex

import (
	"context"
	"errors"

	"ductor/cli"
	"ductor/cli/rpc"
)

// idleNote is what the next process must know to keep an app server in which nothing runs.
type idleNote struct {
	Version string `json:"version"` // of the program that runs
}

// IdleNote says which version of Codex runs; see shared.Server.
func (h *server) IdleNote() string { return string(jsonOf(idleNote{h.version})) }

// leftNothing says whether Codex knows nothing of the turn any more.
func (t *liveTurn) leftNothing() bool {
	var refused *rpc.Error
	if t.unwritten || t.parser.status != "" {
		return true
	}
	return t.parser.refused != nil && errors.As(t.parser.refused, &refused)
}

// unload has Codex forget how the previous process had a thread, in a process that was attached to: it takes over
// nothing of a resume of a thread that somebody listens to already.
func (s *live) unload(ctx context.Context, thread cli.AgentSessionID) error {
	if _, runs := s.server.turns.Of(thread); runs || !s.server.Attached() {
		return nil
	}
	return notRefused(s.server.Peer().Call(ctx, "thread/unsubscribe", map[string]any{"threadId": thread}, nil))
}

// notRefused is err, unless it says that there is no such thread or method.
func notRefused(err error) error {
	var refused *rpc.Error
	if errors.As(err, &refused) {
		return nil
	}
	return err
}
