package codex

import (
	"context"
	"encoding/json"
	"errors"

	"ductor/cli"
	"ductor/cli/rpc"
)

// restNote is what the next process must know to keep an app server in which nothing runs.
type restNote struct {
	Version string `json:"version"` // of the program that runs
}

// turnStarted increments the active-turn count. It is called before the turn is asked for.
func (h *server) turnStarted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy++
}

// turnEnded decrements the active-turn count and, at zero, records that the process is idle: the
// line that begins a turn is queued after that, if the turn was counted in later.
func (h *server) turnEnded() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy--
	if h.busy > 0 || h.letGo {
		return
	}
	raw, err := json.Marshal(restNote{h.version})
	if err != nil { // a string always can be written
		return
	}
	failed := func(err error) {
		h.provider.opts.Logger.Debug("an app server rests without a note of it", "pid", h.process.PID(), "err", err)
	}
	h.peer.Mark(cli.Mark{Turn: cli.RestMark, Note: string(raw)}, failed)
}

// leftNothing says whether Codex knows nothing of the turn any more.
func (t *liveTurn) leftNothing() bool {
	var refused *rpc.Error
	switch {
	case !t.counted:
		return false
	case t.unwritten, t.parser.status != "":
		return true
	}
	return t.parser.refused != nil && errors.As(t.parser.refused, &refused)
}

// unload has Codex forget how the previous process had a thread, in a process that was attached to: it takes over
// nothing of a resume of a thread that somebody listens to already.
func (s *live) unload(ctx context.Context, thread cli.AgentSessionID) error {
	if s.server.left == nil || s.server.inboxOf(thread, false) != nil {
		return nil
	}
	return notRefused(s.server.peer.Call(ctx, "thread/unsubscribe", map[string]any{"threadId": thread}, nil))
}

// notRefused is err, unless it says that there is no such thread or method.
func notRefused(err error) error {
	var refused *rpc.Error
	if errors.As(err, &refused) {
		return nil
	}
	return err
}
