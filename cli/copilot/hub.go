package copilot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/sourcegraph/jsonrpc2"

	"ductor/cli"
)

const (
	stopSlack    = 10 * time.Second // what ending a process may take beyond its grace
	callWait     = time.Minute      // for the answer to a question that asks no model, on a small box that is busy
	garbageKept  = 1 << 10
	stderrShown  = 2 << 10
	protocolWant = 3 // the version of the protocol that this package speaks
	sendPrefix   = "send-"
)

// hub is one live process and the sessions in it. Safe for concurrent use.
type hub struct {
	key     string
	process cli.Process
	grace   time.Duration
	frames  *frames
	conn    *jsonrpc2.Conn
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the process will print nothing any more
	handled atomic.Int64  // the offset after the last message that was dealt with
	prefix  string        // of the ids of our requests: an earlier ductor may have asked the same process
	former  bool          // an earlier ductor began it: sessions may be loaded in it as that one had them

	mu       sync.Mutex
	slots    map[cli.AgentSessionID]*slot
	next     int
	garbled  int
	rubbish  []byte
	doomed   bool // takes no new session
	spoiled  bool // what an aborted turn started may run in it: it ends with the last turn
	detached bool // some session goes on without us
	busy     int  // turns that run, or of which something may be left

	// Under hubs.mu.
	users   int                  // sessions, and one more while turns are awaited
	awaited map[cli.TurnID]*slot // that an earlier ductor left and nobody asked for yet
}

// newHub begins to talk with a process whose output begins at offset. past is what is caught up with.
func newHub(key string, process cli.Process, grace time.Duration, from int64, slots map[cli.AgentSessionID]*slot, until *int64) *hub {
	h := &hub{
		key: key, process: process, grace: grace, ended: make(chan struct{}), prefix: uuid.NewString()[:8] + "-",
		slots: slots,
	}
	h.handled.Store(from)
	h.frames = newFrames(process, from, h)
	if until != nil {
		h.frames.src.until, h.frames.src.reached = *until, h.caughtUp
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.conn = jsonrpc2.NewConn(ctx, readUntilEnd{h.frames, h.ended, &h.handled}, h, jsonrpc2.OnRecv(h.received), jsonrpc2.SetLogger(silent{}))
	return h
}

// readUntilEnd tells when there is nothing more to read.
type readUntilEnd struct {
	*frames
	ended   chan struct{}
	handled *atomic.Int64
}

func (r readUntilEnd) ReadObject(v any) error {
	err := r.frames.ReadObject(v)
	if err != nil {
		close(r.ended) // the connection reads no more after an error
		return err
	}
	r.handled.Store(r.frames.offset())
	return nil
}

// silent is the library's log: what it says, of answers nobody waits for, is no news.
type silent struct{}

func (silent) Printf(string, ...any) {}

// Handle takes requests and notifications of the process; it is called in order.
func (h *hub) Handle(ctx context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) {
	if r.Notif {
		if r.Method == eventMethod && r.Params != nil {
			h.take(*r.Params, h.frames.offset())
		}
		return
	}
	var params struct {
		SessionID cli.AgentSessionID `json:"sessionId"`
	}
	if r.Params != nil {
		_ = json.Unmarshal(*r.Params, &params)
	}
	if s := h.slot(params.SessionID); s != nil && asksPeople(r.Method) && s.put(item{request: r, end: h.frames.offset()}) {
		return
	}
	_ = conn.ReplyWithError(ctx, r.ID, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "nobody answers this now"})
}

// received sees every answer, also to requests of an earlier ductor.
func (h *hub) received(_ *jsonrpc2.Request, resp *jsonrpc2.Response) {
	if resp == nil || !resp.ID.IsString || len(resp.ID.Str) <= len(sendPrefix) || resp.ID.Str[:len(sendPrefix)] != sendPrefix {
		return
	}
	reply := &sendReply{turn: resp.ID.Str[len(sendPrefix):]}
	if resp.Error != nil {
		reply.err = resp.Error
	}
	for _, s := range h.all() {
		s.put(item{sent: reply, end: h.frames.offset()})
	}
}

func (h *hub) sessionEvent(raw []byte, end int64) {
	var m struct {
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		h.garbage(raw)
		return
	}
	h.take(m.Params, end)
}

// take hands an event to the session it is of.
func (h *hub) take(params json.RawMessage, end int64) {
	h.handled.Store(end)
	var m struct {
		SessionID cli.AgentSessionID `json:"sessionId"`
		Event     json.RawMessage    `json:"event"`
	}
	if err := json.Unmarshal(params, &m); err != nil {
		h.garbage(params)
		return
	}
	if s := h.slot(m.SessionID); s != nil && !s.put(item{event: m.Event, end: end}) {
		h.betweenTurns(m.SessionID, m.Event)
	}
}

// betweenTurns refuses what a session asks for while no turn runs, as one does that works in the background.
func (h *hub) betweenTurns(id cli.AgentSessionID, raw []byte) {
	e, err := decodeEvent(raw)
	if err != nil || e.Type != evPermissionAsked {
		return
	}
	if f, err := e.fields(); err == nil && !f.ResolvedByHook {
		_ = h.notify("session.permissions.handlePendingPermissionRequest", denial(id, f.RequestID, nobodyAllows))
	}
}

func (h *hub) garbage(raw []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.garbled++
	if h.rubbish == nil {
		h.rubbish = append([]byte{}, raw[:min(len(raw), garbageKept)]...)
	}
}

func (h *hub) lost(l *cli.LostOutput) {
	for _, s := range h.all() {
		s.put(item{lost: l, end: l.To})
	}
}

func (h *hub) caughtUp() {
	for _, s := range h.all() {
		s.put(item{caughtUp: true})
	}
}

func (h *hub) slot(id cli.AgentSessionID) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.slots[id]
}

func (h *hub) all() []*slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*slot, 0, len(h.slots))
	for _, s := range h.slots {
		all = append(all, s)
	}
	return all
}

// enter makes the slot of a session, or finds the one that was made for it before.
func (h *hub) enter(id cli.AgentSessionID) *slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.slots[id] == nil {
		h.slots[id] = newSlot()
	}
	return h.slots[id]
}

func (h *hub) leave(id cli.AgentSessionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.slots, id)
}

// id names the next request of ours.
func (h *hub) id() jsonrpc2.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	return jsonrpc2.ID{Str: fmt.Sprint(h.prefix, h.next), IsString: true}
}

// call asks and waits for the answer, no longer than callWait.
func (h *hub) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	err := h.conn.Call(ctx, method, params, result, jsonrpc2.PickID(h.id()))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsonrpc2.ErrClosed):
		return h.failure()
	}
	return fmt.Errorf("%s: %w", method, err)
}

// notify asks and does not wait for the answer.
func (h *hub) notify(method string, params any) error {
	_, err := h.conn.DispatchCall(context.Background(), method, params, jsonrpc2.PickID(h.id()))
	return err
}

// send asks for a turn. mark is recorded before it is written; failed is called if that, and so the turn, fails.
func (h *hub) send(ctx context.Context, mark cli.Mark, turn string, params any, failed func(error)) error {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": sendPrefix + turn, "method": "session.send", "params": params})
	if err != nil {
		return err
	}
	o := outgoing{data: framed(body), failed: failed}
	if mark.Turn != "" {
		o.before = func() error {
			ctx, cancel := context.WithTimeout(ctx, callWait)
			defer cancel()
			return h.process.Begin(ctx, mark)
		}
	}
	return h.frames.offer(o)
}

func (h *hub) alive() bool {
	select {
	case <-h.ended:
		return false
	case <-h.process.Done():
		return false
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.doomed
}

func (h *hub) doom() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doomed = true
}

// givenUp says whether the process is ended, or will be with the last turn in it.
func (h *hub) givenUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.doomed
}

// occupy begins a turn in the slot of a session, unless the process was given up. Who gives it up says so before looking
// who is in it, so that it is not ended under this turn.
func (h *hub) occupy(s *slot) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doomed {
		return false
	}
	s.begin(0)
	return true
}

// alone says whether no other session has a turn.
func (h *hub) alone(mine *slot) bool {
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
func (h *hub) stop(ctx context.Context, grace time.Duration) error {
	h.doom()
	ctx, cancel := context.WithTimeout(ctx, grace+stopSlack)
	defer cancel()
	err := h.process.Stop(ctx, grace)
	h.frames.drop()
	_ = h.process.Stdin().Close() // frees a writer
	for _, over := range []chan struct{}{h.ended, h.frames.written} {
		select {
		case <-over:
		case <-ctx.Done():
			err = errors.Join(err, fmt.Errorf("end copilot: %w", context.Cause(ctx)))
		}
	}
	h.cancel()
	return err
}

// detach lets go of the process, which goes on.
func (h *hub) detach() {
	h.doom()
	h.frames.flush(restWait)
	h.process.Detach()
	h.frames.drop()
	<-h.ended
	<-h.frames.written
	h.cancel()
}

// failure says what the end of the process in mid turn means.
func (h *hub) failure() *cli.Failure {
	exit := cli.ExitStatus{Code: -1}
	wait := time.NewTimer(time.Second)
	defer wait.Stop()
	select {
	case <-h.process.Done():
		exit = h.process.Exit()
	case <-wait.C:
	}
	stderr := h.process.StderrTail()
	if len(stderr) > stderrShown {
		stderr = "…" + stderr[len(stderr)-stderrShown:]
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.garbled > 0 && (exit.Code == 0 || stderr == "") {
		f := cli.Failf(cli.BadOutput, Agent, "%d messages cannot be read", h.garbled)
		f.Detail, f.Code = cli.Shorten(string(h.rubbish), garbageKept), exit.Code
		return f
	}
	f := &cli.Failure{Kind: cli.Crashed, Agent: Agent, Code: exit.Code, Detail: stderr, Reason: lastLine(stderr)}
	return exitFailure(f)
}
