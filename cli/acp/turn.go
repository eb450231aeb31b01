package acp

import (
	"context"
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
	s.mu.Lock()
	s.switched = ""
	s.mu.Unlock()
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
	h.busier()
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
	v, why := verdictOn(t.s.asSwitched(t.req), *a.tool, t.s.provider.opts.Protected)
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
	t.out.Pass(a.event(t.req.Dir, t.s.host.quirks.InputOf))
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
