package acp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// interruptWait is how soon session/cancel must show any effect.
const interruptWait = 100 * time.Millisecond

// liveTurn is a running turn.
type liveTurn struct {
	s         *session
	req       cli.Request
	out       *turn.Emitter
	reporter  *reporter
	approvals *turn.Approvals[*ask]
	loop      *turn.Turn[item]
	resumed   *adopted     // the state of a resumed turn; nil for a new one
	reply     *rpc.Message // the reply that ended it
	unsent    error        // why its prompt was not sent
	inTool    bool         // when the turn was interrupted, a tool ran or waited for permission
}

// Turn implements cli.Session.
func (s *session) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	o := s.process.options()
	out := turn.NewEmitter(o.Agent, o.Now, emit)
	if s.adopted != nil {
		s.resume(ctx, req, out)
		return
	}
	if ctx.Err() != nil {
		out.Finish(cli.Cut(ctx, o.Agent))
		return
	}
	s.awaitLate(ctx)
	req, warning := s.withoutUnread(ctx, req)
	blocks, n, err := s.prepare(ctx, req)
	s.name(out)
	if err != nil {
		out.Finish(cli.StartResult(ctx, o.Agent, o.failure(err)))
		return
	}
	if warning != nil {
		out.Pass(warning)
	}
	s.listen()
	s.process.TurnStarted() // if the process is about to end, its end ends the turn
	t := s.newTurn(req, out, nil, func() { s.sendPrompt(req, blocks, n) })
	t.finish(ctx, t.loop.Run(ctx))
}

// name emits the id of the session.
func (s *session) name(out *turn.Emitter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	quirks := s.process.options().quirks
	out.Started(cli.SessionStarted{AgentSessionID: s.id, Model: cli.ModelID(s.offers.model), Forgets: quirks.Forgets, Mute: !quirks.Notices})
}

// newTurn creates a turn for events from now on. begin sends the prompt; it is nil for a resumed turn.
func (s *session) newTurn(req cli.Request, out *turn.Emitter, resumed *adopted, begin func()) *liveTurn {
	s.workspace.allow(req.Permission)
	t := &liveTurn{s: s, req: req, out: out, reporter: newReporter(out, req.Dir, s.process.options().quirks), resumed: resumed}
	t.approvals = turn.NewApprovals[*ask](out, nil)
	s.mu.Lock()
	s.turn.approvals, s.past.late.conversation, s.past.late.turn = t.approvals, req.Conversation, req.Turn
	s.mu.Unlock()
	loop := turn.Loop[item]{
		Source: turn.Source[item]{
			In: s.inbox, Gone: s.process.Gone(), Stop: s.process.StopAlone, Limits: turn.LimitsOf(s.process.options().ProviderOptions),
			End: func(i item) int64 { return i.at },
		},
		Begin: begin, Handle: t.handle, Interrupt: t.cancel, Waiting: t.approvals.Waiting, Out: out,
	}
	loop.Source.Limits.Interrupt = interruptWait
	if resumed != nil {
		t.approvals.Hold()
		loop.Source.Resumed = &turn.Resumed{From: resumed.mark.Output, When: s.process.Program().When}
	}
	t.loop = turn.New(loop)
	return t
}

// listen passes events to the turn from now on.
func (s *session) listen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.inbox = phaseRunning, turn.NewQueue[item](0)
	s.turn, s.past.late.expected = turnState{}, false
}

// replied handles the answer to a prompt.
func (s *session) replied(m rpc.Message) { s.deliver(item{at: m.End, reply: &m}) }

func (s *session) sendPrompt(req cli.Request, blocks []block, n note) {
	inbox := s.inbox
	s.process.Peer().Ask(s.process.Life(), rpc.Prompt{
		ID: s.promptID(req.Turn), Method: methodPrompt, Params: sessionParams{SessionID: string(s.id), Prompt: blocks},
		Mark: func(size int) cli.Mark {
			n.Length = size
			return cli.Mark{Turn: req.Turn, Note: n.String()}
		},
		Marked:   func(m cli.Mark) { s.marked(m, n) },
		Answered: s.replied,
		Unsent: func(err error) {
			if !errors.Is(err, rpc.ErrEnded) { // Gone reports that
				put(inbox, item{unsent: err})
			}
		},
	})
}

// handle handles one item. It reports whether that ended the turn.
func (t *liveTurn) handle(i item) (end bool) {
	switch {
	case i.update != nil:
		t.reporter.update(i.update)
	case i.ask != nil:
		t.asked(i.ask)
	case i.decided != nil:
		t.decided(i.decided)
	case i.withdrawn != "":
		for _, a := range t.approvals.Withdraw(func(a *ask) bool { return rpc.Text(a.id) == i.withdrawn }) {
			t.s.process.respond(a.id, cancelled())
		}
	case i.Any():
		t.loop.Changed(i.Change)
		if i.CaughtUp {
			t.goLive()
		}
	}
	if i.reply != nil && i.reply.Error == nil && !t.s.process.options().quirks.Forgets {
		t.out.Accepted()
	}
	t.reply, t.unsent = cmp.Or(i.reply, t.reply), cmp.Or(i.unsent, t.unsent)
	t.approvals.Withdraw(func(a *ask) bool { return a.tool.phase == toolEnded })
	return t.reply != nil || t.unsent != nil
}

// asked decides about a permission request, or asks a user.
func (t *liveTurn) asked(a *ask) {
	a.tool = t.reporter.call(a.params.ToolCall)
	if t.resumed != nil && t.resumed.note.answered(a) {
		t.decided(&decided{ask: a, allow: !slices.Contains(t.resumed.note.Denied, rpc.Text(a.id))})
		return
	}
	v, why := verdictOn(t.s.permitted(t.req), *a.tool, t.s.process.options().Protected)
	result, err := a.choose(v == verdictAllow)
	questions := a.questions()
	switch {
	case t.loop.Cut():
		t.s.process.respond(a.id, cancelled())
	case questions != nil && t.req.Tools.Permits(a.tool.name):
		t.askQuestions(a, questions)
	case v == verdictDeny:
		t.s.process.respond(a.id, result)
		t.reporter.deny(a.tool, why)
	case v == verdictAllow && err == nil:
		t.s.process.respond(a.id, result)
		t.reporter.startTool(a.tool)
	default: // the card explains why the request cannot be allowed: only permanent options exist
		t.reporter.showTool(a.tool)
		t.approvals.Add(turn.Pending[*ask]{ID: a.key(), About: a, Ask: func() cli.Event {
			a.plans = a.tool.ToolKind == kindSwitch && t.s.permitted(t.req).Permission == cli.Plan
			return a.event(t.req.Dir, t.s.process.options().quirks.Tools.InputOf)
		}})
	}
}

func (t *liveTurn) decided(d *decided) {
	if d.allow {
		t.reporter.startTool(d.ask.tool)
		return
	}
	t.reporter.deny(d.ask.tool, "")
}

// cancel asks the agent to end the turn. If the agent waits for permission, cancel answers that too, because the agent
// ends the turn only then.
func (t *liveTurn) cancel() error {
	t.reporter.cut = true
	err := t.s.process.Peer().Notify(methodCancel, sessionParams{SessionID: string(t.s.id)})
	open := t.approvals.Withdraw(func(*ask) bool { return true })
	t.inTool = len(open) > 0 || t.out.OpenTools() > 0
	for _, a := range open {
		t.s.process.respond(a.id, cancelled())
	}
	return err
}

// finish emits the result, and updates the session.
func (t *liveTurn) finish(ctx context.Context, end turn.End) {
	s := t.s
	s.process.Peer().Forget(s.promptID(t.req.Turn))
	// The session of a replaced turn can continue if the agent ended the turn and no tool is still running: Gemini's
	// model rejects messages after a call without a result.
	replaced := cli.Replaced(ctx) && t.reply != nil && t.out.OpenTools() == 0
	after, leaves := phaseBroken, shared.EndOver
	switch {
	case end == turn.EndDetached:
		after, leaves = phaseLeft, shared.EndDetached
	case t.loop.Cut() && !replaced:
		// The protocol has no environment per session that would distinguish the processes of its tools from those of
		// other sessions. So a process with an interrupted turn that ran tools does not outlive its turns; their
		// sessions are resumed in another process by their ids.
		if t.reporter.ran || t.reply == nil && t.unsent == nil {
			leaves = shared.EndLeftovers
		}
	case t.reply != nil && t.resumed == nil: // a resumed session's offers are unknown
		after = phaseIdle
	}
	whole := t.reply != nil && !t.loop.Cut()
	for _, i := range append(t.loop.Rest(), s.stopListening(after, whole)...) {
		switch { // text came with the end of the turn, or after it
		case i.ask != nil && after != phaseLeft:
			s.process.respond(i.ask.id, cancelled())
		case i.update != nil && i.update.Kind == updateMessage && whole:
			s.process.late.Store(true)
			t.reporter.update(i.update)
		}
	}
	if err := t.loop.StopErr(); err != nil {
		s.process.options().Logger.Error("an agent did not end", "agent", string(s.process.options().Agent), "err", err)
	}
	t.approvals.Close(end == turn.EndDetached)
	r := t.outcome(end)
	t.reporter.sayHeld()
	if r.Err == nil {
		t.reporter.emitHeldRepeat()
	}
	r.Denials, r.Fill = t.reporter.denials, t.reporter.fill
	t.remember(r)
	t.out.Finish(r)
	s.process.TurnEnded(ctx, leaves)
}

// remember emits PromptAccepted for an agent with Forgets, if it accepted the prompt and keeps it. Such an agent
// forgets a turn that was stopped outside of a tool, or that failed before one ran.
func (t *liveTurn) remember(r cli.Result) {
	switch {
	case !t.s.process.options().quirks.Forgets:
	case t.reply != nil && (t.loop.Cut() && !t.inTool || !t.loop.Cut() && r.Err != nil && !t.reporter.ran):
		t.s.mu.Lock()
		t.s.past.instructed = "" // the agent forgot them with the prompt
		t.s.mu.Unlock()
	case t.reply != nil, t.reporter.ran, t.out.Answer() != "":
		t.out.Accepted()
	}
}

// stopListening ends listen, and returns the items that no turn handled. Text about a complete turn is late from now
// on.
func (s *session) stopListening(to phase, whole bool) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == phaseRunning {
		s.phase = to
	}
	if whole {
		s.expectLate()
	}
	s.turn = turnState{}
	rest, _ := s.inbox.Take()
	return rest
}
