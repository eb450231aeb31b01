package codex

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// liveTurn is one turn of a thread. All but stop, decide and steer belongs to the goroutine of Turn.
type liveTurn struct {
	s      *live
	req    cli.Request
	out    *turn.Emitter
	parser *liveParser
	in     *inbox
	asks   *asks
	ctx    context.Context
	stop   context.CancelCauseFunc
	done   chan struct{}

	start     string     // the name of the question that starts the turn
	settled   bool       // the answer came
	held      []news     // what came before it: whose it is can only be said then
	sent      bool       // the question was written, or is about to be
	counted   bool       // the process is busy with it
	at        time.Time  // of the message that is dealt with, while the past is told
	past      bool       // it is
	began     time.Time  // of a turn that is resumed
	failed    chan error // the question could not be written
	unwritten bool       // it was not, or was not tried to be yet
	rest      []news     // what came after the end
	letGo     bool

	timer *time.Timer
	quiet time.Time // of the last message
	cut   time.Time // when it was asked to end; zero while it runs
	why   cli.Result
	asked bool // turn/interrupt is on its way

	mu sync.Mutex
	id string // Codex's own name of the turn, once it is known
}

// Turn runs one prompt in the thread, or goes on with the one that was adopted.
func (s *live) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := turn.NewEmitter(Agent, s.provider.opts.Now, emit)
	left := s.takeLeft()
	if ctx.Err() != nil && left == nil {
		out.Finish(cli.Cut(ctx, Agent))
		return
	}
	t := s.newTurn(ctx, req, out, left)
	defer t.end()
	if err := t.open(left); err != nil {
		out.Finish(cli.Result{Err: s.server.broken(err)})
		return
	}
	r := t.run()
	t.close(&r)
	out.Finish(r)
}

func (s *live) takeLeft() *awaitedTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.left
	s.left = nil
	return left
}

// startName is how the question that starts a turn is called. The next process knows the answer by it.
func startName(turn cli.TurnID) string { return "turn." + string(turn) }

func (s *live) newTurn(ctx context.Context, req cli.Request, out *turn.Emitter, left *awaitedTurn) *liveTurn {
	t := &liveTurn{s: s, req: req, out: out, asks: &asks{}, done: make(chan struct{}), failed: make(chan error, 1), start: startName(req.Turn)}
	if req.Turn == "" {
		t.start = s.server.Peer().NextID()
	}
	t.ctx, t.stop = context.WithCancelCause(ctx)
	t.in = turn.NewQueue[news](0)
	if left != nil {
		t.in, t.past, t.sent, t.counted, t.unwritten = left.in, true, !left.unsent, true, left.unsent
		if t.at = req.Began; t.at.IsZero() {
			t.at = s.server.Program().When(left.mark.Output)
		}
		t.began = t.now()
		out.Past(t.now)
	}
	t.parser = newLiveParser(out, req)
	t.parser.now, t.parser.patience = t.now, s.provider.opts.Patience
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = t
	t.parser.session(s.thread, cli.ModelID(or(string(req.Model), s.model)))
	return t
}

// now is the time at which the message that is dealt with was made, or the clock's.
func (t *liveTurn) now() time.Time {
	if t.past && !t.at.IsZero() {
		return t.at
	}
	return t.s.provider.opts.Now()
}

// open has the thread's messages come here, and asks for the turn if no process has.
func (t *liveTurn) open(left *awaitedTurn) error {
	if left == nil {
		h := t.s.server
		if err := h.Peer().Expect(t.start, func(m rpc.Message) { put(t.in, m) }); err != nil {
			return err
		}
		h.turns.Set(t.s.thread, t.in)
	}
	if t.sent || t.past { // what was not sent yet is, when all else is known
		return nil
	}
	return t.send()
}

// send asks for the turn. Its beginning is recorded before.
func (t *liveTurn) send() error {
	t.sent, t.unwritten = true, true
	ctx, cancel := context.WithTimeout(t.ctx, helloWait)
	defer cancel()
	defaults, err := t.s.server.configured(ctx)
	if err != nil {
		return err
	}
	peer := t.s.server.Peer()
	start := rpc.Request{ID: t.start, Method: "turn/start", Params: t.s.turnParams(t.req, defaults), Sent: t.written}
	if t.req.Turn != "" {
		mark := cli.Mark{Turn: t.req.Turn, Note: t.s.note()}
		start.Before = func(int) error { _, err := peer.Begin(t.ctx, mark); return err }
	}
	if !t.counted {
		t.counted = true
		t.s.server.TurnStarted() // where it is about to end, the end of it ends the turn
	}
	if err := peer.Send(start); err != nil {
		return err
	}
	t.unwritten = false // unless failed says otherwise
	return nil
}

// written learns how writing the question went.
func (t *liveTurn) written(err error) {
	if err == nil {
		return
	}
	t.failed <- err
	t.in.Wake()
}

// end detaches from the thread's messages.
func (t *liveTurn) end() {
	t.s.server.Peer().Forget(t.start)
	t.s.server.turns.Remove(t.s.thread, t.in)
	for _, n := range append(t.rest, t.in.Close()...) {
		if n.Asks() && !t.letGo && !t.past {
			_ = t.s.server.Peer().Reply(n.ID, declining(n.Message), nil) // no turn is left to ask in
		}
	}
	t.s.mu.Lock()
	t.s.turn = nil
	t.s.mu.Unlock()
	t.stop(nil)
	if t.counted {
		t.s.server.TurnEnded(t.ctx, shared.EndOver)
	}
	close(t.done)
}

// run deals with messages until the turn is over.
func (t *liveTurn) run() cli.Result {
	t.quiet = time.Now()
	t.timer = time.NewTimer(t.s.provider.opts.Stall)
	defer t.timer.Stop()
	cancelled := t.ctx.Done()
	for {
		r, over := t.takeAll()
		if over {
			return r
		}
		select {
		case <-t.in.Ready():
		case <-t.timer.C:
			if r, over := t.tick(); over {
				return r
			}
		case <-cancelled:
			cancelled = nil
			if errors.Is(context.Cause(t.ctx), cli.ErrDetached) && t.cut.IsZero() {
				t.s.server.TurnEnded(t.ctx, shared.EndDetached)
				t.letGo, t.counted = true, false
				return cli.Result{Detached: true}
			}
			t.interrupt(cli.Cut(t.ctx, Agent))
		case <-t.s.server.Gone():
			if r, over := t.takeAll(); over {
				return r
			}
			return t.crashed()
		}
	}
}

// takeAll deals with what waits. over is true when the turn has ended.
func (t *liveTurn) takeAll() (r cli.Result, over bool) {
	all, full := t.in.Take()
	if len(all) > 0 {
		t.quiet = time.Now()
	}
	for i, n := range all {
		if t.take(n) {
			t.rest = all[i+1:]
			return t.result(), true
		}
	}
	if full {
		t.interrupt(cli.Result{Err: cli.Failf(cli.BadOutput, Agent, "it says more than can be kept up with")})
	}
	select {
	case err := <-t.failed:
		t.unwritten = true
		return cli.Result{Err: t.s.server.broken(err)}, true
	default:
	}
	if f := t.parser.hopeless; f != nil && t.cut.IsZero() {
		t.interrupt(cli.Result{Err: f})
	}
	if t.cut.IsZero() {
		t.timer.Reset(t.patience())
	}
	return cli.Result{}, false
}

// take deals with one piece of news and says whether it ended the turn.
func (t *liveTurn) take(n news) (over bool) {
	switch {
	case n.CaughtUp:
		return t.caughtUp()
	case n.Lost != nil:
		t.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: n.Lost.Error()})
		return false
	case n.denied != nil:
		t.parser.denied(t.approvalOf(n.denied), or(cli.ShortLine(n.reason), "it was not allowed"))
		return false
	case n.Method == "":
		return t.started(n.Message)
	case !t.settled:
		t.held = append(t.held, n)
		return false
	}
	return t.handle(n.Message)
}

// started deals with the answer to the question that starts the turn, and then with what came before it.
func (t *liveTurn) started(m rpc.Message) (over bool) {
	var reply struct {
		Turn struct {
			ID string `json:"id"`
		} `json:"turn"`
	}
	err := m.Read(Agent, "turn/start", &reply)
	if err == nil && reply.Turn.ID == "" {
		err = cli.Failf(cli.BadOutput, Agent, "it started a turn without a name")
	}
	if err != nil {
		t.parser.refused = t.s.server.broken(err)
		return true
	}
	t.settled = true
	t.mu.Lock()
	t.id = reply.Turn.ID
	t.mu.Unlock()
	t.parser.turn = reply.Turn.ID
	held := t.held
	t.held = nil
	for _, n := range held {
		if t.take(n) {
			return true
		}
	}
	if !t.cut.IsZero() {
		t.sendInterrupt()
	}
	return false
}

// handle deals with a message of this thread.
func (t *liveTurn) handle(m rpc.Message) (over bool) {
	if at := time.UnixMilli(m.EmittedAt); m.EmittedAt > 0 && at.After(t.at) {
		t.at = at
	}
	if len(m.ID) > 0 {
		t.ask(m)
		return false
	}
	if m.Method == "serverRequest/resolved" {
		t.resolved(m)
		return false
	}
	return t.parser.notification(m)
}

// caughtUp ends the past: what waits for people is told, and what was never sent is.
func (t *liveTurn) caughtUp() (over bool) {
	if !t.settled { // then there is nothing of this turn to tell; it would have been held
		t.held = nil
	}
	t.past = false
	for _, a := range t.asks.tell() {
		t.present(a)
	}
	t.out.Pass(cli.CaughtUp{})
	if t.sent || !t.cut.IsZero() {
		return false
	}
	if err := t.send(); err != nil {
		t.parser.refused = t.s.server.broken(err)
		return true
	}
	return false
}

// patience is how long the turn may be silent from now on.
func (t *liveTurn) patience() time.Duration {
	p := t.s.provider
	switch {
	case !t.settled && !t.past:
		return startWait
	case t.out.OpenTools() > 0:
		return p.opts.ToolStall
	}
	return p.opts.Stall
}

const startWait = time.Minute // for the answer to turn/start

// tick does what is due.
func (t *liveTurn) tick() (r cli.Result, over bool) {
	switch {
	case !t.cut.IsZero() && t.past: // it will be asked to end when it is known which it is
		t.timer.Reset(t.s.provider.opts.Grace / 2)
		return cli.Result{}, false
	case !t.cut.IsZero():
		return t.deaf(), true
	}
	now := time.Now()
	if heard := t.asks.waited(now); heard.After(t.quiet) { // people may take their time
		t.quiet = heard
	}
	silence, limit := now.Sub(t.quiet), t.patience()
	if silence < limit {
		t.timer.Reset(limit - silence)
		return cli.Result{}, false
	}
	if !t.settled && !t.past {
		t.interrupt(cli.Result{Err: cli.Failf(cli.BadOutput, Agent, "its app server did not answer for %s", silence.Round(time.Second))})
		return cli.Result{}, false
	}
	t.interrupt(cli.Stalled(Agent, silence))
	return cli.Result{}, false
}

// close withdraws what is asked, fills in the Result, and keeps what the next turn must know.
func (t *liveTurn) close(r *cli.Result) {
	if !r.Detached {
		for _, a := range t.asks.close() {
			if a.told {
				t.out.Pass(cli.ApprovalWithdrawn{ID: a.id})
			}
		}
	}
	r.Usage, r.Denials = t.parser.used(), append(r.Denials, t.parser.denials...)
	if t.past && !r.Detached { // it ended while no session listened
		r.Duration = max(t.now().Sub(t.began), time.Millisecond)
		t.out.Pass(cli.CaughtUp{})
	}
	if t.sessionGoesOn() {
		t.cut = time.Time{}
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.spent = t.s.spent || !t.cut.IsZero()
}
