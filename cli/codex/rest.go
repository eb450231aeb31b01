package codex

import (
	"context"
	"encoding/json"
	"errors"

	"ductor/cli"
)

// restNote is what a later ductor must know to keep an app server in which nothing runs.
type restNote struct {
	Version string `json:"version"` // of the program that runs
}

// busier counts one more turn in. It is called before the turn is asked for.
func (h *hub) busier() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy++
}

// quieter counts a turn out of which nothing is left. After the last one it is recorded that the process rests: the
// line that begins a turn is queued after that, if the turn was counted in later.
func (h *hub) quieter() {
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
	_ = h.out.put(parcel{mark: &cli.Mark{Turn: cli.RestMark, Note: string(raw)}, output: h.feed.at.Load, failed: failed}) // then it is gone
}

// leftNothing says whether Codex knows nothing of the turn any more.
func (t *liveTurn) leftNothing() bool {
	var refused *rpcError
	switch {
	case !t.counted:
		return false
	case t.unwritten, t.parser.status != "":
		return true
	}
	return t.parser.refused != nil && errors.As(t.parser.refused, &refused)
}

// unload has Codex forget how an earlier ductor had a thread, in a process that was attached to: it takes over
// nothing of a resume of a thread that somebody listens to already.
func (s *live) unload(ctx context.Context, thread cli.AgentSessionID) error {
	if s.hub.left == nil || s.hub.inboxOf(thread, false) != nil {
		return nil
	}
	return notRefused(s.hub.conn.call(ctx, "thread/unsubscribe", map[string]any{"threadId": thread}, nil))
}

// notRefused is err, unless it says that there is no such thread or method.
func notRefused(err error) error {
	var refused *rpcError
	if errors.As(err, &refused) {
		return nil
	}
	return err
}
