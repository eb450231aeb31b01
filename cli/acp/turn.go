package acp

import (
	"context"
	"slices"
	"time"

	"ductor/cli"
	"ductor/cli/acp/toolcall"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

// interruptWait is how long ductor waits for the agent to react to session/cancel.
const interruptWait = 100 * time.Millisecond

const maxWithdrawn = 64

// liveTurn is a running turn. It implements shared.AgentTurn.
type liveTurn struct {
	*shared.Turn[news]
	s         *session
	reporter  *reporter
	approvals *turn.Approvals[*ask]
	blocks    []toolcall.Block
	warning   cli.Event    // warning that the model cannot read the pictures, or nil
	reply     *rpc.Message // the agent's reply to the prompt, which ends the turn
	inTool    bool         // whether a tool ran or waited for permission when the turn was interrupted
	withdrawn []string     // IDs of requests that the agent recently withdrew

	// s.mu guards the following fields.
	permission cli.PermissionMode // mode that was set during the turn; empty for the initial mode
	marked     cli.Mark
	note       note
}

func (s *session) Check(t *shared.Turn[news]) error {
	if t.Req.Task != cli.TaskCompact || s.compaction() != "" {
		return nil
	}
	s.name(t.Out)
	return cli.CannotCompact(s.options().Agent)
}

// name emits the session's ID, model and title.
func (s *session) name(out *turn.Emitter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	quirks := s.options().quirks
	out.Started(cli.SessionStarted{
		AgentSessionID: s.id, Model: cli.ModelID(s.offers.model.current), Title: s.offers.title,
		Forgets: quirks.Forgets, Mute: !quirks.Notices,
	})
}

func (s *session) Begin(ctx context.Context, t *shared.Turn[news]) (_ shared.AgentTurn[news], err error) {
	l := &liveTurn{
		Turn: t, s: s, reporter: newReporter(t.Out, t.Req.Dir, s.options().quirks),
		approvals: turn.NewApprovals[*ask](t.Out, nil), note: s.adopted,
	}
	if t.Adopted != nil {
		l.marked = *t.Adopted
		return l, nil
	}
	s.awaitLate(ctx)
	s.warnAboutAbsent(t)
	req, warning := s.withoutUnread(ctx, t.Req)
	l.warning = warning
	if l.blocks, l.note, err = s.prepare(ctx, req); err != nil && !s.process.GivenUp() {
		s.name(t.Out)
	}
	return l, err
}

func (s *session) warnAboutAbsent(t *shared.Turn[news]) {
	s.mu.Lock()
	named := s.past.absent || s.process.hello.Capabilities.MCP.HTTP
	s.past.absent = true
	s.mu.Unlock()
	for _, server := range t.Req.Servers {
		if !named && server.URL != "" {
			t.Out.Pass(t.Req.WithoutServer(s.options().Agent, server))
		}
	}
}

func (t *liveTurn) Approvals() shared.Approvals { return t.approvals }

func (t *liveTurn) Start() {
	t.s.workspace.SetMode(t.Req.Permission)
	t.s.mu.Lock()
	late := &t.s.past.late
	late.conversation, late.turn, late.expected = t.Req.Conversation, t.Req.Turn, false
	t.s.mu.Unlock()
	t.s.name(t.Out)
	if t.warning != nil {
		t.Out.Pass(t.warning)
	}
}

func (t *liveTurn) Prompt(context.Context) (p rpc.Prompt, err error) {
	if t.Adopted != nil {
		if t.blocks, err = t.s.blocks(t.Req); err != nil {
			return p, err
		}
	}
	return rpc.Prompt{
		Method: methodPrompt, Params: sessionParams{SessionID: string(t.s.id), Prompt: t.blocks},
		Mark: func(size int) cli.Mark {
			t.s.mu.Lock()
			defer t.s.mu.Unlock()
			t.note.Length = size
			return cli.Mark{Turn: t.Req.Turn, Note: t.note.String()}
		},
		Marked: func(m cli.Mark) {
			t.s.mu.Lock()
			defer t.s.mu.Unlock()
			t.marked = m
		},
	}, nil
}

// Replied handles the reply to the prompt, which ends the turn.
func (t *liveTurn) Replied(m rpc.Message) error {
	if t.reply = &m; m.Error == nil && !t.s.options().quirks.Forgets {
		t.Accepted()
	}
	return nil
}

func (t *liveTurn) Over() bool { return t.reply != nil }

func (t *liveTurn) Handle(n news) {
	switch {
	case n.update != nil && n.update.Kind == updateInfo:
		t.s.name(t.Out)
	case n.update != nil:
		t.reporter.update(n.update)
		t.askAgain(n.update.ID)
	case n.ask != nil:
		t.withdrawn = slices.DeleteFunc(t.withdrawn, func(id string) bool { return id == rpc.Text(n.ask.id) })
		t.asked(n.ask)
	case n.decided != nil:
		t.answer(n.decided)
	case n.over != nil:
		t.withdrawn = append(t.withdrawn, rpc.Text(n.over.RequestID))
		t.withdrawn = t.withdrawn[max(len(t.withdrawn)-maxWithdrawn, 0):]
		for _, a := range t.approvals.Withdraw(n.over.ends) {
			reply := a.cancelled()
			if n.over.VisitID != "" {
				reply = map[string]any{"action": "accept"}
			}
			t.s.process.respond(a.id, reply)
		}
	case n.served != nil:
		t.reporter.serve(n.served)
	}
	t.approvals.Withdraw(func(a *ask) bool { return a.tool.phase == toolEnded })
}

// askAgain asks the user again about a tool call that the agent has changed.
func (t *liveTurn) askAgain(call string) {
	changed := func(a *ask) bool {
		return call != "" && a.tool.call.ID == call && a.tool.phase != toolEnded && a.changed()
	}
	for _, a := range t.approvals.Withdraw(changed) {
		a.renew()
		t.asked(a)
	}
}

// asked handles a permission request or a form. If the permission mode does not decide the request, asked shows it to
// the user. If a user answered the request before ductor was restarted, asked only emits the events that follow from
// the answer.
func (t *liveTurn) asked(a *ask) {
	a.tool = &tool{}
	if a.form == nil {
		t.reporter.forget(a.params.ToolCall.ID)
		a.tool = t.reporter.call(a.params.ToolCall)
		a.shown = a.tool.call
	}
	if t.s.adopted.answered(a) {
		t.decided(&decided{ask: a, allow: !slices.Contains(t.s.adopted.Denied, rpc.Text(a.id))})
		return
	}
	if a.form != nil && t.Req.Attended {
		if err := a.form.checkLabels(t.Req); err != nil {
			t.s.process.refuse(a.id, rpc.CodeBadParams, "no user can be asked: "+cli.ShortLine(err.Error()))
			return
		}
	}
	v, why := verdictOn(t.permitted(), *a.tool, t.s.options().Protected)
	result, err := a.choose(v == verdictAllow)
	questions := a.questions(t.Req)
	switch {
	case t.Loop.Cut():
		t.s.process.cancel(a)
	case a.form != nil, questions != nil && t.Req.Tools.Permits(a.tool.name):
		t.askQuestions(a, questions)
	case v == verdictDeny:
		t.s.process.respond(a.id, result)
		t.reporter.deny(a.tool, why)
	case v == verdictAllow && err == nil:
		t.s.process.respond(a.id, result)
		t.reporter.startTool(a.tool)
	default:
		t.reporter.showTool(a.tool)
		t.approvals.Add(turn.Pending[*ask]{ID: a.key(), About: a, Ask: func() cli.Event {
			a.endsPlanMode = a.tool.call.ToolKind == toolcall.KindSwitch && t.permitted().Permission == cli.Plan
			return a.event(t.Req.Dir, t.s.options().quirks.Tools.InputOf)
		}})
	}
}

// answer sends a user's decision to the agent. If the agent has changed the tool call meanwhile, or if a value in a
// form is invalid, answer sends nothing and asks the user again.
func (t *liveTurn) answer(d *decided) {
	a := d.ask
	switch {
	// The agent no longer waits for the answer.
	case t.Loop.Cut(), a.tool.phase == toolEnded, slices.Contains(t.withdrawn, rpc.Text(a.id)):
		t.s.process.cancel(a)
		return
	case d.result == nil:
		a.timesAsked++
		t.asked(a)
		return
	case d.allow && a.changed():
		t.Out.Pass(cli.ApprovalWithdrawn{ID: a.key(), Superseded: true})
		a.renew()
		t.asked(a)
		return
	}
	if d.endsPlanMode {
		t.s.mu.Lock()
		t.permit(cli.Ask)
		t.s.offers.mode.current = "" // the agent leaves plan mode by itself, and does not report its new mode
		t.s.mu.Unlock()
	}
	t.decided(d)
	_ = t.s.process.Peer().Reply(a.id, d.result, func(err error) {
		if err == nil {
			t.noteAnswered(*d)
		}
	})
}

// decided emits the events that follow from a user's decision.
func (t *liveTurn) decided(d *decided) {
	switch {
	case d.ask.form != nil:
	case d.allow:
		t.reporter.startTool(d.ask.tool)
	default:
		t.reporter.deny(d.ask.tool, "")
	}
}

// Interrupt implements shared.AgentTurn. It also cancels open requests, because the agent cannot end the turn before
// they are answered.
func (t *liveTurn) Interrupt() error {
	t.reporter.cut = true
	err := t.s.process.Peer().Notify(methodCancel, sessionParams{SessionID: string(t.s.id)})
	open := t.approvals.Withdraw(func(*ask) bool { return true })
	t.inTool = len(open) > 0 || t.Out.OpenTools() > 0
	for _, a := range open {
		t.s.process.cancel(a)
	}
	return err
}

// End implements shared.AgentTurn. After an interrupted turn, processes of its tools may still run. ductor cannot
// distinguish them from processes of other sessions, because the protocol has no environment per session. So ductor
// starts no further turn in the agent's process. The process ends after its running turns, and the sessions continue in
// another process.
func (t *liveTurn) End(turn.End) (shared.Phase, shared.TurnEnd) {
	// If the user has replaced the turn by another prompt, the session can continue under two conditions: the agent has
	// ended the turn, and every tool call has a result. Without a result, Gemini's model would reject the prompt.
	replaced := cli.Replaced(t.Context()) && t.reply != nil && t.Out.OpenTools() == 0
	switch cut := t.Loop.Cut() && !replaced; {
	case cut && (t.reporter.ran || t.reply == nil && t.PromptState() != shared.PromptFailed):
		return shared.PhaseSpent, shared.EndLeftovers
	// No turn can follow a resumed turn in the same process, because ductor does not know the options of the session.
	case cut, t.reply == nil, t.Adopted != nil:
		return shared.PhaseSpent, shared.EndOver
	}
	if t.whole() {
		t.s.expectLate()
	}
	return shared.PhaseIdle, shared.EndOver
}

// whole reports whether the agent ended the turn without an interrupt.
func (t *liveTurn) whole() bool { return t.reply != nil && !t.Loop.Cut() }

// Late implements shared.AgentTurn. It cancels requests, and adds text to the answer.
func (t *liveTurn) Late(n news) {
	switch {
	case n.ask != nil:
		t.s.process.cancel(n.ask)
	case n.decided != nil:
		t.s.process.cancel(n.decided.ask)
	case n.update != nil && n.update.Kind == updateMessage && t.whole():
		t.s.process.provider.late.Store(true)
		t.reporter.update(n.update)
	}
}

func (t *liveTurn) Result(end turn.End) cli.Result {
	r := t.outcome(end)
	t.reporter.sayHeld()
	if r.Err == nil {
		t.reporter.emitHeldRepeat()
	}
	r.Denials, r.Fill = t.reporter.denials, t.reporter.fill
	t.s.mu.Lock()
	before, now := t.note.Spent, t.s.past.spent
	if now != nil && *now > 0 {
		r.Fill.SpentUSD = now
	}
	switch {
	case before == nil || now == nil:
	case *now < *before: // the agent counts from zero again, so all of the cost belongs to this turn
		r.Consumed.CostUSD = *now
	default:
		r.Consumed.CostUSD = *now - *before
	}
	t.s.mu.Unlock()
	t.remember(r)
	return r
}

// remember emits PromptAccepted for an agent with Quirks.Forgets, if the prompt is still in the agent's session. The
// agent has removed the prompt if the turn was interrupted while no tool ran, or if the turn failed before a tool ran.
func (t *liveTurn) remember(r cli.Result) {
	switch {
	case !t.s.options().quirks.Forgets:
	case t.reply != nil && (t.Loop.Cut() && !t.inTool || !t.Loop.Cut() && r.Err != nil && !t.reporter.ran):
		t.s.mu.Lock()
		t.s.past.instructed = "" // the agent removed the instructions with the prompt, so send them again
		t.s.mu.Unlock()
	case t.reply != nil, t.reporter.ran, t.Out.Answer() != "":
		t.Out.Accepted()
	}
}
