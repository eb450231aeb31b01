package copilot

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
)

const (
	callWait     = time.Minute // for the answer to a question that asks no model, on a small box that is busy
	protocolWant = 3           // the version of the protocol that this package speaks
	sendPrefix   = "send-"
	eventMethod  = "session.event"
)

// server is one live process and the sessions in it. Safe for concurrent use.
type server struct {
	key     string
	process cli.Process
	grace   time.Duration
	peer    *rpc.Peer
	former  bool // the previous process began it: sessions may be loaded in it as that one had them

	mu        sync.Mutex
	slots     map[cli.AgentSessionID]*slot
	ending    bool // takes no new session
	leftovers bool // what an aborted turn started may run in it: it ends with the last turn
	detached  bool // some session goes on without us
	busy      int  // turns that run, or of which something may be left

	// Under servers.mu.
	users   int                  // sessions, and one more while turns are awaited
	awaited map[cli.TurnID]*slot // that the previous process left and no request resumed yet
}

// newServer makes a server of a process. The caller has its peer listen.
func newServer(key string, process cli.Process, grace time.Duration, o rpc.Options) *server {
	h := &server{key: key, process: process, grace: grace, slots: map[cli.AgentSessionID]*slot{}}
	o.Agent, o.Framing, o.Version, o.Handler = Agent, rpc.ContentLength, "2.0", h
	h.peer = rpc.New(process, o)
	return h
}

// Requested hands a request to the session it is of, if that has a turn; see rpc.Handler.
func (h *server) Requested(m rpc.Message) bool {
	var params struct {
		SessionID cli.AgentSessionID `json:"sessionId"`
	}
	_ = json.Unmarshal(m.Params, &params) // what names no session is of none
	s := h.slot(params.SessionID)
	return s != nil && asksPeople(m.Method) && s.put(item{request: &m, end: m.End})
}

// Notified hands an event to the session it is of.
func (h *server) Notified(m rpc.Message) {
	if m.Method != eventMethod {
		return
	}
	var params struct {
		SessionID cli.AgentSessionID `json:"sessionId"`
		Event     json.RawMessage    `json:"event"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		h.peer.Garbage(m.Params)
		return
	}
	if s := h.slot(params.SessionID); s != nil && !s.put(item{event: params.Event, end: m.End}) {
		h.betweenTurns(params.SessionID, params.Event)
	}
}

// expect has the answer to session.send put into the slot of its turn.
func (h *server) expect(turn string, s *slot) error {
	return h.peer.Expect(sendPrefix+turn, func(m rpc.Message) {
		reply := &sendReply{turn: turn}
		if m.Error != nil {
			reply.err = m.Error
		}
		s.put(item{sent: reply, end: m.End})
	})
}

// betweenTurns refuses what a session asks for while no turn runs, as one does that works in the background.
func (h *server) betweenTurns(id cli.AgentSessionID, raw []byte) {
	e, err := decodeEvent(raw)
	if err != nil || e.Type != evPermissionAsked {
		return
	}
	if f, err := e.fields(); err == nil && !f.ResolvedByHook {
		_ = h.notify("session.permissions.handlePendingPermissionRequest", denial(id, f.RequestID, noUserAllows))
	}
}

// Changed tells every session what happened to the output. Of its end turns learn from the peer.
func (h *server) Changed(c rpc.Change) {
	if c.Ended {
		return
	}
	it := item{Change: c}
	if c.Lost != nil {
		it.end = h.peer.Handled()
	}
	for _, s := range h.all() {
		s.put(it)
	}
}

func (h *server) slot(id cli.AgentSessionID) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slots[id]
}

func (h *server) all() []*slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*slot, 0, len(h.slots))
	for _, s := range h.slots {
		all = append(all, s)
	}
	return all
}

// enter makes the slot of a session, or finds the one that was made for it before.
func (h *server) enter(id cli.AgentSessionID) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slots[id] == nil {
		h.slots[id] = newSlot()
	}
	return h.slots[id]
}

func (h *server) leave(id cli.AgentSessionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.slots, id)
}

// call asks and waits for the answer, no longer than callWait.
func (h *server) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	err := h.peer.Call(ctx, method, params, result)
	if errors.Is(err, rpc.ErrEnded) {
		return h.failure()
	}
	return err
}

// notify asks and does not wait for the answer.
func (h *server) notify(method string, params any) error {
	return h.peer.Send(rpc.Request{Method: method, Params: params})
}

// send asks for a turn. mark is recorded before it is written; failed is called if that, and so the turn, fails.
func (h *server) send(ctx context.Context, mark cli.Mark, turn string, params any, failed func(error)) error {
	r := rpc.Request{ID: sendPrefix + turn, Method: "session.send", Params: params}
	r.Sent = func(err error) {
		if err != nil {
			failed(err)
		}
	}
	if mark.Turn != "" {
		r.Before = func(int) error { _, err := h.peer.Begin(ctx, mark); return err }
	}
	return h.peer.Send(r)
}

func (h *server) alive() bool {
	select {
	case <-h.peer.Ended():
		return false
	case <-h.process.Done():
		return false
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.ending
}

func (h *server) retire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = true
}

// givenUp says whether the process is ended, or will be with the last turn in it.
func (h *server) givenUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ending
}

// occupy begins a turn in the slot of a session, unless the process was given up. Who gives it up says so before looking
// who is in it, so that it is not ended under this turn.
func (h *server) occupy(s *slot) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending {
		return false
	}
	s.begin(0)
	return true
}

// alone says whether no other session has a turn.
func (h *server) alone(mine *slot) bool {
	for _, s := range h.all() {
		s.mu.Lock()
		busy := s.busy
		s.mu.Unlock()
		if s != mine && busy {
			return false
		}
	}
	return true
}

// stop ends the process with all it started. Idempotent.
func (h *server) stop(ctx context.Context, grace time.Duration) error {
	h.retire()
	return h.peer.Stop(ctx, grace)
}

// detach detaches from the process, which goes on.
func (h *server) detach() error {
	h.retire()
	return h.peer.Detach()
}

// failure says what the end of the process in mid turn means.
func (h *server) failure() *cli.Failure { return exitFailure(h.peer.Failure()) }
