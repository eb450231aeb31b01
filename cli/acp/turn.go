package acp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"ductor/cli"
)

const (
	// interruptWait is how soon session/cancel must show any effect.
	interruptWait = 100 * time.Millisecond
	oddLinesTold  = 3
)

// turn is one prompt on its way to its end. It begins as running, may become cut (asked to end), and is over.
type turn struct {
	s     *session
	ctx   context.Context
	req   cli.Request
	out   *cli.Emitter
	tell  *teller
	timer *time.Timer

	quiet     time.Time // when something was heard last
	cutBy     cli.End   // why the turn is to end; empty while it runs
	cutAt     time.Time
	reacted   bool
	reply     *message // that ended it
	sendErr   error    // why the prompt was not sent
	gone      bool     // the process ended
	overflow  bool
	detached  bool
	silence   time.Duration
	replaying bool   // what comes was said to an earlier ductor
	open      []*ask // asked in what is replayed
	answered  map[string]bool
	from, at  int64        // of a turn that was adopted: where it began, and how far it was told
	send      func() error // sends its prompt, if that was not sent yet; nil once it was
}

// Turn runs one prompt; see cli.Session.
func (s *session) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := cli.NewEmitter(s.provider.opts.Agent, s.provider.opts.Now, emit)
	if s.adopted != nil {
		s.goOn(ctx, req, out)
		return
	}
	if ctx.Err() != nil {
		out.Finish(cli.Cut(ctx, s.provider.opts.Agent))
		return
	}
	line, n, err := s.prepare(ctx, req)
	if err != nil {
		r := cli.Result{Err: s.provider.failure(err)}
		if ctx.Err() != nil {
			r = cli.Cut(ctx, s.provider.opts.Agent)
		}
		s.name(out)
		out.Finish(r)
		return
	}
	s.name(out)
	t := s.newTurn(ctx, req, out)
	s.listen()
	s.ask(req, line, n)
	t.run()
}

// name tells which session this is.
func (s *session) name(out *cli.Emitter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Session(s.id, cli.ModelID(s.model))
}

func (s *session) newTurn(ctx context.Context, req cli.Request, out *cli.Emitter) *turn {
	s.ground.allow(req)
	return &turn{s: s, ctx: ctx, req: req, out: out, tell: newTeller(out, req.Dir, s.host.quirks), quiet: time.Now()}
}

// listen hands what comes to the turn from now on.
func (s *session) listen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	s.listening, s.spoiled = true, true // until the turn ended as it should
	s.inbox = newInbox()
	s.asks = map[cli.AskID]*ask{}
}

// ask sends the prompt.
func (s *session) ask(req cli.Request, line []byte, n note) {
	h := s.host
	id := s.promptID(req.Turn)
	h.mu.Lock()
	h.prompts[id] = s
	h.mu.Unlock()
	inbox := s.inbox
	told := func(err error) {
		if err != nil {
			inbox.put(item{sent: &sent{err}})
		}
	}
	if err := h.out.send(parcel{line: line, before: func() error { return s.mark(req.Turn, n) }, sent: told}); err != nil {
		told(err)
	}
	select {
	case <-h.pumped: // perhaps before anybody listened
		inbox.put(item{ended: true})
	default:
	}
}

// run takes the turn to its end and emits the result.
func (t *turn) run() {
	t.s.host.turnBegins()
	t.timer = time.NewTimer(t.limit())
	defer t.timer.Stop()
	cancelled := t.ctx.Done()
	for !t.over() {
		select {
		case <-t.s.inbox.ready:
			t.takeAll()
		case <-t.timer.C:
			t.tick()
		case <-cancelled:
			cancelled = nil
			if errors.Is(context.Cause(t.ctx), cli.ErrDetached) && t.cutBy == "" {
				t.detached = true
				break
			}
			t.cut(cli.EndCancelled)
		}
	}
	t.finish()
}

func (t *turn) over() bool {
	return t.reply != nil || t.gone || t.detached || t.sendErr != nil || t.overflow
}

func (t *turn) takeAll() {
	for _, i := range t.s.inbox.take() {
		if t.over() {
			t.s.late(i)
			continue
		}
		t.take(i)
	}
}

// late takes what came with the end of the turn, or after it.
func (s *session) late(i item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.between(i)
	if i.ask != nil && !s.detached && !s.detaching {
		s.host.respond(i.ask.id, cancelled())
	}
}

func (t *turn) take(i item) {
	if i.at > 0 && i.at <= t.from && !i.caughtUp { // of an earlier turn
		return
	}
	t.at = max(t.at, i.at)
	t.quiet, t.reacted = time.Now(), true
	switch {
	case i.update != nil:
		t.tell.update(i.update)
	case i.ask != nil:
		t.asked(i.ask)
	case i.reply != nil:
		t.reply = i.reply
	case i.decided != nil:
		t.decided(i.decided)
	case i.withdrawn != "":
		t.withdrawn(i.withdrawn)
	case i.lost != nil:
		t.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: i.lost.Error()})
	case i.caughtUp:
		t.caughtUp()
	case i.sent != nil:
		t.sendErr = i.sent.err
	case i.overflow:
		t.overflow = true
	case i.ended:
		t.gone = true
	}
	t.settleAsks()
}

// asked decides on a request for permission, or has a person do it.
func (t *turn) asked(a *ask) {
	t.tell.asked(a)
	if t.answered[idOf(a.id)] {
		return
	}
	v, why := verdictOn(t.req, *a.tool)
	switch {
	case t.cutBy != "":
		t.s.host.respond(a.id, cancelled())
	case v == verdictAllow:
		t.allow(a)
	case v == verdictDeny:
		result, _ := a.answer(false) // saying no never fails
		t.s.host.respond(a.id, result)
		t.tell.deny(a.tool, why)
	case t.replaying:
		t.open = append(t.open, a)
	default:
		t.put(a)
	}
}

// put asks a person.
func (t *turn) put(a *ask) {
	a.told = true
	t.s.await(a)
	t.out.Pass(a.event(t.req.Dir))
}

func (t *turn) allow(a *ask) {
	result, err := a.answer(true)
	if err != nil {
		t.put(a) // what lasts is for a person to say, who is told then why it cannot be
		return
	}
	t.s.host.respond(a.id, result)
	t.tell.start(a.tool)
}

func (t *turn) decided(d *decided) {
	if d.allow {
		t.tell.start(d.ask.tool)
		return
	}
	t.tell.deny(d.ask.tool, "denied")
}

// withdrawn takes back what the agent gave up asking.
func (t *turn) withdrawn(id string) {
	gone := t.s.withdraw(func(a *ask) bool { return string(a.id) == id || idOf(a.id) == id })
	for _, a := range gone {
		t.out.Pass(cli.AskWithdrawn{ID: a.key()})
		t.s.host.respond(a.id, cancelled())
	}
}

// settleAsks takes back questions about tools that ended without an answer.
func (t *turn) settleAsks() {
	for _, a := range t.s.withdraw(func(a *ask) bool { return a.tool != nil && a.tool.ended }) {
		t.out.Pass(cli.AskWithdrawn{ID: a.key()})
	}
}

// cut asks the agent to end the turn.
func (t *turn) cut(why cli.End) {
	if t.cutBy != "" {
		return
	}
	t.cutBy, t.cutAt, t.reacted = why, time.Now(), false
	h := t.s.host
	err := h.send(request{Method: methodCancel, Params: sessionParams{string(t.s.id)}})
	// An agent that waits for permission ends the turn only when that is answered, too.
	for _, a := range append(t.s.withdraw(func(*ask) bool { return true }), t.open...) {
		h.respond(a.id, cancelled())
	}
	if err != nil {
		t.stop()
		return
	}
	t.timer.Reset(min(interruptWait, t.s.provider.opts.Grace/2))
}

// limit is how long the agent may be silent now.
func (t *turn) limit() time.Duration {
	if t.out.OpenTools() > 0 || t.waiting() {
		return t.s.provider.opts.ToolStall
	}
	return t.s.provider.opts.Stall
}

// waiting says whether the agent waits for a person.
func (t *turn) waiting() bool {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return len(t.s.asks) > 0
}

// tick does what is due, and sets the timer to what is due next.
func (t *turn) tick() {
	if t.cutBy != "" {
		half := t.cutAt.Add(t.s.provider.opts.Grace / 2)
		if !t.reacted || !time.Now().Before(half) {
			t.stop()
			return
		}
		t.timer.Reset(time.Until(half))
		return
	}
	if t.waiting() { // for as long as a person takes
		t.quiet = time.Now()
	}
	limit, silence := t.limit(), time.Since(t.quiet)
	if silence >= limit {
		t.silence = silence
		t.cut(cli.EndStalled)
		return
	}
	t.timer.Reset(min(limit-silence, t.s.provider.opts.Stall)) // a tool that ends shortens the limit
}

// stop ends an agent that did not end the turn when it was asked to. One that serves others is left to them, and
// ended with the last of them.
func (t *turn) stop() {
	h := t.s.host
	if !h.alone() {
		h.taint()
		t.gone = true
		return
	}
	grace := max(t.s.provider.opts.Grace-time.Since(t.cutAt), 0)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), grace+stopSlack)
	defer cancel()
	if err := h.process.Stop(ctx, grace); err != nil {
		t.s.provider.opts.Logger.Error("an agent did not end", "agent", string(t.s.provider.opts.Agent), "err", err)
	}
	select {
	case <-h.pumped:
	case <-ctx.Done():
	}
	t.takeAll() // its last words
	t.gone = true
}

// finish emits the result.
func (t *turn) finish() {
	s := t.s
	rest := s.settle(t.reply != nil && t.cutBy == "", t.detached)
	for _, i := range rest {
		s.late(i)
	}
	r := t.result()
	t.tell.release()
	if t.replaying && !t.detached { // it ended in the past
		t.replaying = false
		t.out.Pass(cli.CaughtUp{})
	}
	if t.tell.mode != "" {
		s.mu.Lock()
		s.mode = t.tell.mode
		s.mu.Unlock()
	}
	r.Denials = t.tell.denials
	t.out.Finish(r)
	s.host.turnOver(t.ctx, !t.detached && t.cutBy != "" && t.tell.ran)
}

// settle ends listening, and gives what nobody listened to any more.
func (s *session) settle(well, detached bool) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listening, s.spoiled, s.detaching = false, !well, detached
	s.marked = cli.Mark{}
	s.asks = map[cli.AskID]*ask{}
	return s.inbox.take()
}

// result is how the turn ended: by the agent's own word, unless we cut it short.
func (t *turn) result() cli.Result {
	agent := t.s.provider.opts.Agent
	switch {
	case t.detached:
		return cli.Result{Detached: true}
	case t.reply != nil:
		r := t.replied()
		if t.cutBy != "" && (r.Err != nil || t.reply.Error != nil) {
			return t.cutResult(r)
		}
		return r
	case t.cutBy != "":
		return t.cutResult(cli.Result{})
	case t.sendErr != nil:
		return cli.Result{Err: &cli.Failure{Kind: cli.Crashed, Agent: agent, Reason: "it did not take the message", Cause: t.sendErr}}
	case t.overflow:
		return cli.Result{Err: cli.Failf(cli.BadOutput, agent, "it says more than can be kept")}
	}
	return cli.Result{Err: t.s.host.failure()}
}

func (t *turn) cutResult(said cli.Result) cli.Result {
	r := cli.Cut(t.ctx, t.s.provider.opts.Agent)
	if t.cutBy == cli.EndStalled {
		r = cli.Stalled(t.s.provider.opts.Agent, t.silence)
	}
	r.Usage, r.ByModel = said.Usage, said.ByModel
	return r
}

// replied is the result that the agent's answer to the prompt says.
func (t *turn) replied() cli.Result {
	agent := t.s.provider.opts.Agent
	if t.reply.Error != nil {
		return cli.Result{Err: t.s.provider.refusal(t.reply.Error)}
	}
	var p prompted
	if err := json.Unmarshal(t.reply.Result, &p); err != nil || p.StopReason == "" {
		f := cli.Failf(cli.BadOutput, agent, "the end of the turn cannot be read")
		f.Detail = cli.Shorten(string(t.reply.Result), 1000)
		return cli.Result{Err: f}
	}
	r := t.s.counted(p)
	switch p.StopReason {
	case "end_turn":
		if text, ok := t.tell.failed(r.Usage); ok {
			r.Err = t.s.provider.meaning(errorCode(text), text)
		}
	case "cancelled":
		r.Err = cli.Failf(cli.UnknownFailure, agent, "it cancelled the turn by itself")
	case "max_tokens":
		r.Err = cli.Failf(cli.LimitOfTurn, agent, "the answer became too long")
	case "max_turn_requests":
		r.Err = cli.Failf(cli.LimitOfTurn, agent, "it asked its model too many times")
	case "refusal":
		r.Err = cli.Failf(cli.Refused, agent, "the model refuses to go on")
	default:
		r.Err = cli.Failf(cli.UnknownFailure, agent, "it stopped: %s", oneLine(p.StopReason))
	}
	return r
}

// counted is what a turn used, as far as the agent says.
func (s *session) counted(p prompted) cli.Result {
	var r cli.Result
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p.Usage != nil:
		u := p.Usage
		r.Usage = cli.Usage{Input: max(u.Input-u.CacheRead, 0), Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Thought}
	case p.Meta.Quota != nil:
		q := p.Meta.Quota
		r.Usage = cli.Usage{Input: q.Tokens.Input, Output: q.Tokens.Output}
		for _, m := range q.Models {
			if r.ByModel == nil {
				r.ByModel = map[cli.ModelID]cli.Usage{}
			}
			r.ByModel[cli.ModelID(m.Model)] = cli.Usage{Input: m.Tokens.Input, Output: m.Tokens.Output}
		}
	}
	if s.host.quirks.TotalUsage && p.Usage != nil {
		total := r.Usage
		r.Usage = total.Sub(s.totals)
		s.totals = total
	}
	return r
}
