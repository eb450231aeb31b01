package acp

import (
	"context"
	"encoding/json"

	"ductor/cli"
)

// restNote is what a later ductor must know to keep a process in which nothing runs: how it introduced itself, which
// the protocol has it do once.
type restNote struct {
	Hello initialized `json:"hello"`
}

// busier counts one more turn in. It is called before the turn is asked for.
func (h *host) busier() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy++
}

// quieter counts a turn out of which nothing is left. After the last one it is recorded that the process rests: what
// begins a turn is queued after that, if the turn was counted in later. A process that takes no further session is
// none to be kept.
func (h *host) quieter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy--
	if h.busy > 0 || h.tainted || h.detached {
		return
	}
	hello := h.hello
	hello.AuthMethods = nil
	note, err := json.Marshal(restNote{hello})
	if err != nil { // strings and numbers can always be encoded
		return
	}
	mark := func() error {
		h.mu.Lock()
		m := cli.Mark{Turn: cli.RestMark, Output: h.handled, Note: string(note)}
		h.mu.Unlock()
		ctx, cancel := context.WithTimeout(h.life, markWait)
		defer cancel()
		return h.process.Begin(ctx, m)
	}
	o := h.provider.opts
	_ = h.out.send(parcel{before: mark, sent: func(err error) { // if that fails, it is gone
		o.Logger.Debug("an agent rests without a note of it", "agent", string(o.Agent), "pid", h.process.PID(), "err", err)
	}})
}
