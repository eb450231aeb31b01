package copilot

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// turn is one prompt of a live session, from its sending to its end. One goroutine runs it.
type liveTurn struct {
	s      *live
	server *server
	in     *inbox
	p      *parser
	asks   *asks
	id     string // of the request that asks for it
	ctx    context.Context

	timer   *time.Timer
	quiet   time.Time // of the last thing that came
	cut     turn.End  // why the turn is to end; empty while it runs
	cutAt   time.Time
	silence time.Duration
	stopped chan error // nil before the process is ended
	failed  chan error // the turn could not be sent
	from    int64      // the offset at which a turn that was adopted began
	at      int64      // the offset after what is handled now, for the clock of what is caught up with
	past    bool

	mu      sync.Mutex
	closed  bool
	steers  int      // messages on their way
	unheard []string // messages that the process has and the model has not
}

// Turn runs one prompt; see cli.Session.
func (s *live) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	ran := false // a tool
	out := turn.NewEmitter(Agent, s.provider.opts.Now, func(ev cli.Event) {
		_, tool := ev.(cli.ToolStarted)
		ran = ran || tool
		emit(ev)
	})
	s.mu.Lock()
	adopted, asked := s.adopted, s.asked
	s.adopted = nil
	s.mu.Unlock()
	if ctx.Err() != nil && adopted == nil {
		out.Finish(cli.Cut(ctx, Agent))
		return
	}
	if f := refused(req); f != nil && adopted == nil {
		out.Finish(cli.Result{Err: f})
		return
	}
	t := &liveTurn{s: s, ctx: ctx, p: newParser(out, req), failed: make(chan error, 1), id: string(req.Turn)}
	if t.id == "" {
		t.id = uuid.NewString()
	}
	var err error
	if adopted == nil {
		t.server, err = s.ready(ctx, req)
		if err != nil {
			out.Finish(t.unbegun(err))
			return
		}
	}
	if !t.bind(req, adopted) {
		if t.server != nil {
			t.server.TurnEnded(ctx, shared.EndOver)
		}
		out.Finish(t.unbegun(cli.Failf(cli.UnknownFailure, Agent, "the session is closed")))
		return
	}
	if adopted != nil {
		t.past = true
		t.from, t.at = adopted.Output, adopted.Output
		out.Past(t.clock)
	}
	t.p.name()
	if adopted == nil || !asked {
		t.send(req, adopted != nil)
	}
	s.begin(t) // what is sent into the turn comes after its prompt
	end := t.run()
	t.close()
	t.server.Peer().Forget(sendPrefix + t.id)
	out.Finish(t.result(end))
	s.end(t, end)
	t.server.TurnEnded(ctx, t.rest(end, ran))
}

// rest says what the turn leaves in the process. The protocol has no environment for a session, by which what its tools
// started could be told from what those of others did, so the process does not outlive an aborted turn that ran tools.
func (t *liveTurn) rest(end turn.End, ran bool) shared.TurnEnd {
	replaced := cli.Replaced(t.ctx) && t.p.ended && t.stopped == nil // Copilot ended the tools that ran, too
	switch {
	case end == turn.EndDetached:
		return shared.EndDetached
	case t.cut != "" && ran && !replaced:
		return shared.EndLeftovers
	}
	return shared.EndOver
}

// unbegun is the result of a turn that was not sent.
func (t *liveTurn) unbegun(err error) cli.Result {
	if t.ctx.Err() != nil {
		return cli.Cut(t.ctx, Agent)
	}
	return cli.Result{Err: cli.AsFailure(Agent, err)}
}

// bind takes from the session what the turn works with; false if the session was closed before.
func (t *liveTurn) bind(req cli.Request, adopted *cli.Mark) bool {
	p, _ := permissionOf(req.Permission) // checked when the session was opened or adjusted
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	t.server, t.p.id = s.server, s.id
	if adopted != nil {
		t.in = t.server.awaited[adopted.Turn]
	} else {
		t.in = turn.NewQueue[item](0)
		t.server.turns.Set(s.id, t.in)
	}
	if s.model != "" {
		t.p.model = s.model
	}
	t.asks = &asks{server: s.server, session: s.id, attended: req.Attended, judged: p.judged, past: s.asked, protected: s.provider.opts.Protected}
	t.p.asks = t.asks
	s.asked = false
	return true
}

func (s *live) begin(t *liveTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn, s.cut = t, true
	s.turns++
}

// end takes note how the turn ended. What came after its end goes where things between turns go. What comes of one that
// was detached is for the process that resumes it.
func (s *live) end(t *liveTurn, how turn.End) {
	if how != turn.EndDetached {
		t.server.turns.Remove(t.p.id, t.in)
		t.in.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = nil
	s.cut = !t.p.ended
	s.model = t.p.model
}

// send asks for the turn. The mark is recorded right before it is written; a turn that was left has one.
func (t *liveTurn) send(req cli.Request, marked bool) {
	params := t.s.message(req)
	params["mode"] = "enqueue"
	mark := cli.Mark{Turn: req.Turn, Note: string(t.p.id)}
	if marked {
		mark.Turn = ""
	}
	fail := func(err error) { t.failed <- err }
	err := t.server.expect(t.id, t.in)
	if err == nil {
		err = t.server.send(context.WithoutCancel(t.ctx), mark, t.id, params, fail)
	}
	if err != nil {
		fail(err)
	}
}

// message is a prompt as session.send takes it.
func (s *live) message(req cli.Request) map[string]any {
	params := map[string]any{"sessionId": s.Info().AgentSessionID, "prompt": req.Prompt}
	if list := attachments(req.Images); len(list) > 0 {
		params["attachments"] = list
	}
	return params
}

// run takes what comes until the turn is over.
func (t *liveTurn) run() turn.End {
	o := t.s.provider.opts
	t.quiet = time.Now()
	t.timer = time.NewTimer(o.Stall)
	defer t.timer.Stop()
	cancelled := t.ctx.Done()
	for {
		if t.take() {
			return t.as(turn.EndTurn)
		}
		select {
		case <-t.in.Ready():
		case err := <-t.failed:
			if t.p.failure = cli.AsFailure(Agent, err); t.p.failure.Kind == cli.UnknownFailure {
				t.p.failure.Reason = "it could not be asked: " + t.p.failure.Reason
			}
			return t.as(turn.EndTurn)
		case <-t.timer.C:
			t.tick()
		case <-cancelled:
			cancelled = nil
			if errors.Is(context.Cause(t.ctx), cli.ErrDetached) && t.cut == "" {
				return turn.EndDetached
			}
			t.interrupt(turn.EndCancelled)
		case <-t.server.Gone():
			if t.take() {
				return t.as(turn.EndTurn)
			}
			t.awaitStop()
			return t.as(turn.EndExit)
		}
		if t.cut != "" && t.stopped == nil && t.server.GivenUp() {
			return t.cut // the process is given up with others in it
		}
	}
}

func (t *liveTurn) as(end turn.End) turn.End {
	if t.cut != "" && (end != turn.EndTurn || t.p.aborted || t.p.failure != nil) {
		return t.cut
	}
	return end
}

// take handles what waits, and says whether the turn ended.
func (t *liveTurn) take() bool {
	items, full := t.in.Take()
	if full {
		t.p.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: "more came than could be kept: some of it is not shown"})
	}
	if len(items) > 0 {
		t.quiet = time.Now()
	}
	for _, it := range items {
		if it.end != 0 && it.end <= t.from { // of an earlier turn
			continue
		}
		if it.end != 0 {
			t.at = it.end
		}
		t.item(it)
	}
	if t.past {
		return false // what was there is told to its end, and that this was it
	}
	return t.p.failure != nil && !t.p.begun || t.p.ended && t.heard()
}

func (t *liveTurn) item(it item) {
	switch {
	case it.event != nil:
		e, err := decodeEvent(it.event)
		if err == nil {
			_, err = t.p.event(e)
		}
		if err != nil {
			t.server.Peer().Garbage(it.event)
		}
	case it.request != nil:
		t.asks.request(t.p, it.request)
	case it.refused != nil:
		t.p.failure = cli.AsFailure(Agent, callFailure(it.refused))
	case it.CaughtUp:
		t.past = false
		t.asks.caughtUp()
		t.p.out.Pass(cli.CaughtUp{})
	case it.Lost != nil:
		t.p.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: it.Lost.Error()})
	}
}

// clock is the time at which what is handled now was said.
func (t *liveTurn) clock() time.Time {
	if t.past && t.server != nil {
		if at := t.server.Program().When(t.at - 1); !at.IsZero() {
			return at
		}
	}
	return t.s.provider.opts.Now()
}

// tick does what is due and sets the timer to what is due next.
func (t *liveTurn) tick() {
	o := t.s.provider.opts
	now := time.Now()
	switch {
	case t.stopped != nil:
	case t.cut != "":
		if limit := t.cutAt.Add(turn.CutWait(t.ctx, o.Grace)); now.Before(limit) {
			t.timer.Reset(limit.Sub(now))
			return
		}
		t.kill()
	default:
		if heard := t.asks.waited(now); heard.After(t.quiet) { // people may take their time
			t.quiet = heard
		}
		limit := o.Stall
		if t.p.out.OpenTools() > 0 {
			limit = o.ToolStall
		}
		if t.silence = now.Sub(t.quiet); t.silence >= limit {
			t.interrupt(turn.EndStalled)
			return
		}
		t.timer.Reset(min(limit-t.silence, o.Stall))
	}
}

// interrupt asks the process to end the turn.
func (t *liveTurn) interrupt(why turn.End) {
	if t.cut != "" {
		return
	}
	t.cut, t.cutAt = why, time.Now()
	if err := t.server.notify("session.abort", map[string]any{"sessionId": t.p.id, "reason": "user_initiated"}); err != nil {
		t.kill()
		return
	}
	t.timer.Reset(turn.CutWait(t.ctx, t.s.provider.opts.Grace))
}

// kill ends the process, which is deaf. Where it works for others it is left to them, and takes nothing new: it
// ends with the last of them.
func (t *liveTurn) kill() {
	if !t.server.Drain() {
		t.in.Wake()
		return
	}
	t.stopped = make(chan error, 1)
	grace := max(t.s.provider.opts.Grace-time.Since(t.cutAt), 0)
	go func() { t.stopped <- t.server.Stop(context.WithoutCancel(t.ctx), grace) }()
}

// awaitStop waits for the end of a process that is being ended; it is bound by what stop may take.
func (t *liveTurn) awaitStop() {
	if t.stopped != nil {
		<-t.stopped
	}
}

// result is how the turn ended.
func (t *liveTurn) result(end turn.End) cli.Result {
	if end != turn.EndDetached {
		t.asks.end(t.p)
	}
	switch end {
	case turn.EndTurn:
		return t.p.outcome()
	case turn.EndDetached:
		return cli.Result{Detached: true}
	case turn.EndCancelled:
		return t.p.told(cli.Cut(t.ctx, Agent))
	case turn.EndStalled:
		return t.p.told(cli.Stalled(Agent, t.silence))
	}
	r := t.p.told(cli.Result{Err: exitFailure(t.server.Failure())})
	if t.p.failure != nil {
		r.Err = t.p.failure
	}
	return r
}
