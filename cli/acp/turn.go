package acp

import (
	"cmp"
	"context"
	"errors"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

const (
	// interruptWait is how soon session/cancel must show any effect.
	interruptWait = 100 * time.Millisecond
	oddLinesTold  = 3
)

// turn is one prompt on its way to its end. It begins as running, may become cut (asked to end), and is over.
type liveTurn struct {
	s        *session
	ctx      context.Context
	req      cli.Request
	out      *turn.Emitter
	reporter *reporter
	timer    *time.Timer

	quiet     time.Time // when something was heard last
	cutBy     turn.End  // why the turn is to end; empty while it runs
	cutAt     time.Time
	reacted   bool
	reply     *rpc.Message // that ended it
	sendErr   error        // why the prompt was not sent
	gone      bool         // the process ended
	overflow  bool
	detached  bool
	silence   time.Duration
	replaying bool   // the output is from before the restart
	open      []*ask // asked in what is replayed
	answered  map[string]bool
	from, at  int64        // of a turn that was adopted: where it began, and how far it was read
	send      func() error // sends its prompt, if that was not sent yet; nil once it was
}

// Turn runs one prompt; see cli.Session.
func (s *session) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := turn.NewEmitter(s.process.opts.Agent, s.process.opts.Now, emit)
	if s.adopted != nil {
		s.resume(ctx, req, out)
		return
	}
	if ctx.Err() != nil {
		out.Finish(cli.Cut(ctx, s.process.opts.Agent))
		return
	}
	blocks, n, err := s.prepare(ctx, req)
	if err != nil {
		r := cli.Result{Err: s.process.opts.failure(err)}
		if ctx.Err() != nil {
			r = cli.Cut(ctx, s.process.opts.Agent)
		}
		s.name(out)
		out.Finish(r)
		return
	}
	s.name(out)
	t := s.newTurn(ctx, req, out)
	s.listen()
	s.process.TurnStarted() // the end of a process that is about to end ends the turn
	s.ask(req, blocks, n)
	t.run()
}

// name tells which session this is.
func (s *session) name(out *turn.Emitter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Session(s.id, cli.ModelID(s.offers.model))
}

func (s *session) newTurn(ctx context.Context, req cli.Request, out *turn.Emitter) *liveTurn {
	s.workspace.allow(req)
	return &liveTurn{s: s, ctx: ctx, req: req, out: out, reporter: newReporter(out, req.Dir, s.process.quirks), quiet: time.Now()}
}

// listen hands what comes to the turn from now on.
func (s *session) listen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phaseRunning
	s.inbox = turn.NewQueue[item](0)
	s.turn = turnState{asks: map[cli.ApprovalID]*ask{}}
}

// expect has the answer to a turn's prompt delivered.
func (s *session) expect(turn cli.TurnID) error {
	return s.process.Peer().Expect(s.promptID(turn), func(m rpc.Message) { s.deliver(item{at: m.End, reply: &m}) })
}

// ask sends the prompt.
func (s *session) ask(req cli.Request, blocks []block, n note) {
	proc, inbox := s.process, s.inbox
	onSent := func(err error) {
		if err != nil && !errors.Is(err, rpc.ErrEnded) { // Gone tells of that
			put(inbox, item{unsent: err})
		}
	}
	err := s.expect(req.Turn)
	if err == nil {
		err = proc.Peer().Send(rpc.Request{
			ID: s.promptID(req.Turn), Method: methodPrompt, Params: sessionParams{SessionID: string(s.id), Prompt: blocks},
			Before: func(size int) error { n.Length = size; return s.mark(req.Turn, n) }, Sent: onSent,
		})
	}
	onSent(err)
}

// run takes the turn to its end and emits the result.
func (t *liveTurn) run() {
	t.timer = time.NewTimer(t.limit())
	defer t.timer.Stop()
	cancelled := t.ctx.Done()
	for !t.over() {
		select {
		case <-t.s.inbox.Ready():
			t.takeAll()
		case <-t.s.process.Gone():
			t.takeAll()
			t.gone = true
		case <-t.timer.C:
			t.tick()
		case <-cancelled:
			cancelled = nil
			if errors.Is(context.Cause(t.ctx), cli.ErrDetached) && t.cutBy == "" {
				t.detached = true
				break
			}
			t.cut(turn.EndCancelled)
		}
	}
	t.finish()
}

func (t *liveTurn) over() bool {
	return t.reply != nil || t.gone || t.detached || t.sendErr != nil || t.overflow
}

func (t *liveTurn) takeAll() {
	items, full := t.s.inbox.Take()
	for _, i := range items {
		if t.over() {
			t.s.late(i)
			continue
		}
		t.take(i)
	}
	t.overflow = t.overflow || full
}

// late takes what came with the end of the turn, or after it.
func (s *session) late(i item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.between(i)
	if i.ask != nil && s.phase != phaseLeft {
		s.process.respond(i.ask.id, cancelled())
	}
}

func (t *liveTurn) take(i item) {
	if i.at > 0 && i.at <= t.from && !i.CaughtUp { // of an earlier turn
		return
	}
	t.at = max(t.at, i.at)
	t.quiet, t.reacted = time.Now(), true
	switch {
	case i.update != nil:
		t.reporter.update(i.update)
	case i.ask != nil:
		t.asked(i.ask)
	case i.reply != nil:
		t.reply = i.reply
	case i.decided != nil:
		t.decided(i.decided)
	case i.withdrawn != "":
		t.withdrawn(i.withdrawn)
	case i.Lost != nil:
		t.out.Pass(cli.Status{Kind: cli.StatusWarning, Detail: i.Lost.Error()})
	case i.CaughtUp:
		t.caughtUp()
	case i.unsent != nil:
		t.sendErr = i.unsent
	}
	t.withdrawEnded()
}

// permitted is the request of the turn that runs, in the permission mode that counts now.
func (s *session) permitted(req cli.Request) cli.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Permission = cmp.Or(s.turn.permission, req.Permission)
	return req
}

// asked decides on a request for permission, or has a user do it.
func (t *liveTurn) asked(a *ask) {
	a.tool = t.reporter.call(a.params.ToolCall)
	if t.answered[rpc.Text(a.id)] {
		return
	}
	v, why := verdictOn(t.s.permitted(t.req), *a.tool, t.s.process.opts.Protected)
	switch {
	case t.cutBy != "":
		t.s.process.respond(a.id, cancelled())
	case v == verdictAllow:
		t.allow(a)
	case v == verdictDeny:
		result, _ := a.answer(false) // saying no never fails
		t.s.process.respond(a.id, result)
		t.reporter.deny(a.tool, why)
	case t.replaying:
		t.open = append(t.open, a)
	default:
		t.put(a)
	}
}

// put asks a user.
func (t *liveTurn) put(a *ask) {
	a.shown = true
	t.s.await(a)
	t.out.Pass(a.event(t.req.Dir, t.s.process.quirks.InputOf))
}

func (t *liveTurn) allow(a *ask) {
	result, err := a.answer(true)
	if err != nil {
		t.put(a) // a user decides on a lasting permission, and reads then why it cannot be given
		return
	}
	t.s.process.respond(a.id, result)
	t.reporter.start(a.tool)
}

func (t *liveTurn) decided(d *decided) {
	if d.allow {
		t.reporter.start(d.ask.tool)
		return
	}
	t.reporter.deny(d.ask.tool, "denied")
}

// withdrawn takes back what the agent gave up asking.
func (t *liveTurn) withdrawn(id string) {
	gone := t.s.withdraw(func(a *ask) bool { return rpc.Text(a.id) == id })
	for _, a := range gone {
		t.out.Pass(cli.ApprovalWithdrawn{ID: a.key()})
		t.s.process.respond(a.id, cancelled())
	}
}

// withdrawEnded takes back questions about tools that ended without an answer.
func (t *liveTurn) withdrawEnded() {
	for _, a := range t.s.withdraw(func(a *ask) bool { return a.tool != nil && a.tool.phase == toolEnded }) {
		t.out.Pass(cli.ApprovalWithdrawn{ID: a.key()})
	}
}
