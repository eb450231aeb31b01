package shared

import (
	"cmp"
	"context"
	"errors"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/turn"
)

// Item is an input of a turn. It is a message of the agent, the answer to the prompt, the error of sending the prompt,
// or a change of the output. An empty Item makes the turn check whether it is over.
type Item[M any] struct {
	End     int64 // offset in the output after the item; 0 if the item is not output
	Message M
	Reply   *rpc.Message // the answer to the prompt
	Unsent  error        // why the prompt was not sent
	turn.Change
}

// PromptState is the state of the request that starts a turn.
type PromptState string

// PromptState values.
const (
	PromptUnsent   PromptState = "unsent"
	PromptSent     PromptState = "sent"
	PromptAccepted PromptState = "accepted"
	PromptFailed   PromptState = "failed" // the agent did not receive the prompt, or rejected it
)

// AgentTurn is the part of a turn that the provider implements. The turn's goroutine calls all methods except Decide.
type AgentTurn[M any] interface {
	// Start emits SessionStarted if the agent has already named the session.
	Start()
	// Prompt returns the request that starts the turn. It may query the agent. The caller sets the request's ID,
	// Answered and Unsent.
	Prompt(ctx context.Context) (rpc.Prompt, error)
	// Replied handles the answer to the prompt. It returns an error if the agent has rejected the prompt.
	Replied(m rpc.Message) error
	Handle(m M)
	// Over reports whether the turn has ended. It is called after each item.
	Over() bool
	// Interrupt asks the agent to end the turn. It does not wait.
	Interrupt() error
	Approvals() Approvals
	// End returns the next phase of the session, and a TurnEnd that describes what the turn leaves behind in the
	// process. It is called before Result. It is not called if ductor detaches from the turn.
	End(end turn.End) (Phase, TurnEnd)
	Late(m M) // handles a message that came after the end of the turn
	Result(end turn.End) cli.Result
	// Decide implements cli.Decider.
	Decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error
}

// Approvals contains those methods of turn.Approvals that do not depend on its type parameter.
type Approvals interface {
	Hold()
	Release()
	Waiting() bool
	Close(detached bool)
}

// Hopeless is an AgentTurn that reports whether the agent repeats something that cannot succeed; see turn.Loop.
type Hopeless interface {
	Hopeless() bool
}

// Turn is a turn of a Session. Only the turn's goroutine may call its methods, except for Check.
type Turn[M any] struct {
	Req     cli.Request
	Out     *turn.Emitter
	Loop    *turn.Turn[Item[M]] // set before AgentTurn.Start
	Adopted *cli.Mark           // set if the previous process of ductor started the turn

	session *Session[M]
	agent   AgentSession[M]
	part    AgentTurn[M]
	inbox   *turn.Queue[Item[M]]
	prompt  prompt
	ctx     context.Context
	stop    context.CancelCauseFunc
	done    chan struct{}
}

type prompt struct {
	id      string
	state   PromptState // only the turn's goroutine writes it, with Session.mu held
	failure *cli.Failure
}

// Turn implements cli.Session.
func (s *Session[M]) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	t := &Turn[M]{Req: req, Out: turn.NewEmitter(s.opts.Agent, s.opts.Now, emit), session: s,
		prompt: prompt{state: PromptUnsent}, done: make(chan struct{})}
	t.ctx, t.stop = context.WithCancelCause(ctx)
	defer s.setTurn(t)()
	if err := t.prepare(); err != nil {
		t.Out.Finish(cli.StartResult(t.ctx, s.opts.Agent, err))
		return
	}
	t.part.Start()
	t.finish(t.Loop.Run(t.ctx))
}

// setTurn makes t the session's current turn. The caller must call the returned function at the end of the turn.
func (s *Session[M]) setTurn(t *Turn[M]) (unset func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = t
	if s.phase == PhaseAdopted {
		t.Adopted = &s.left.mark
		if s.left.sent {
			t.prompt.state = PromptSent
		}
	}
	return func() {
		s.mu.Lock()
		s.turn = nil
		s.mu.Unlock()
		t.stop(nil)
		close(t.done)
	}
}

// prepare prepares the session for the turn, and counts the turn in the process, so that the process does not end
// before the turn. An adopted turn is already counted.
//
// If the process accepts no more turns, prepare opens the session in another process. This is safe because the prompt
// was not sent yet.
func (t *Turn[M]) prepare() error {
	s, adopted := t.session, t.Adopted != nil
	if t.ctx.Err() != nil && !adopted {
		return context.Cause(t.ctx)
	}
	for opened := adopted; ; opened = true {
		agent := s.usable()
		if agent != nil && !adopted {
			if err := agent.Check(t); err != nil {
				return agent.Failure(err)
			}
		}
		if agent != nil && (opened || agent.Host().Alive()) {
			part, err := agent.Begin(t.ctx, t)
			if err == nil {
				if (adopted || agent.Host().TurnStarted()) && t.begin(agent, part) {
					return nil
				}
				agent.Host().TurnEnded(t.ctx, EndOver)
			} else if !agent.Host().GivenUp() {
				return agent.Failure(err)
			}
		}
		if err := s.reopen(t.ctx, t.Req); err != nil {
			return err
		}
	}
}

// begin makes t the receiver of the session's messages, and creates its loop. It returns false if the session accepts
// no turn.
func (t *Turn[M]) begin(agent AgentSession[M], part AgentTurn[M]) bool {
	if !t.session.begin(t, agent, part) {
		return false
	}
	host, limits := agent.Host(), turn.LimitsOf(t.session.opts.ProviderOptions)
	limits.Start, limits.Interrupt = t.session.dialect.Start, t.session.dialect.Interrupt
	t.prompt.id = t.session.dialect.Prompt + cmp.Or(string(t.Req.Turn), host.Peer().NextID())
	loop := turn.Loop[Item[M]]{
		Source: turn.Source[Item[M]]{
			In: t.inbox, Gone: host.Gone(), Stop: agent.Stop, Limits: limits,
			End: func(i Item[M]) int64 { return i.End },
		},
		Begin: t.send, Handle: t.handle, Interrupt: part.Interrupt, Waiting: part.Approvals().Waiting, Out: t.Out,
	}
	if t.Adopted != nil {
		part.Approvals().Hold()
		loop.Begin = nil
		loop.Source.Resumed = &turn.Resumed{From: t.Adopted.Output, Began: t.Req.Began, When: host.Program().When}
	}
	if h, ok := part.(Hopeless); ok {
		loop.Hopeless = h.Hopeless
	}
	t.Loop = turn.New(loop)
	return true
}

// Context returns the context of the turn. Closing the session also cancels it.
func (t *Turn[M]) Context() context.Context { return t.ctx }

// PromptState returns the state of the request that starts the turn.
func (t *Turn[M]) PromptState() PromptState { return t.prompt.state }

// PromptID returns the ID of the request that starts the turn.
func (t *Turn[M]) PromptID() string { return t.prompt.id }

// Accepted records that the agent has accepted the prompt.
func (t *Turn[M]) Accepted() {
	t.become(PromptAccepted)
	t.Out.Accepted()
}

// Check wakes the turn, which then checks whether it is over, and whether it waits for the user. Safe for concurrent
// use.
func (t *Turn[M]) Check() { t.inbox.Put(Item[M]{}, 0) }

func (t *Turn[M]) become(p PromptState) {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.prompt.state = p
}

// fail records that the agent did not receive the prompt, or rejected it.
func (t *Turn[M]) fail(err error) {
	t.become(PromptFailed)
	t.prompt.failure = t.agent.Failure(err)
}

func (t *Turn[M]) send() {
	p, err := t.part.Prompt(t.ctx)
	if err != nil {
		t.unsent(err)
		return
	}
	p.ID, p.Answered = t.prompt.id, t.session.replied
	p.Unsent = func(err error) {
		f := cli.Failf(cli.Crashed, t.session.opts.Agent, "it did not take the message")
		f.Cause = err
		t.unsent(f)
	}
	t.agent.Host().Peer().Ask(t.agent.Host().Life(), p)
	t.become(PromptSent)
}

func (t *Turn[M]) unsent(err error) {
	if !errors.Is(err, rpc.ErrEnded) { // Process.Gone already reports the end of the output
		t.inbox.Put(Item[M]{Unsent: err}, 0)
	}
}

func (s *Session[M]) replied(m rpc.Message) { s.Deliver(Item[M]{End: m.End, Reply: &m}, len(m.Result)) }

func (t *Turn[M]) handle(i Item[M]) (over bool) {
	switch {
	case i.CaughtUp:
		t.part.Approvals().Release() // requests that are still open need the user's answer
		t.Loop.Changed(i.Change)
		t.caughtUp()
	case i.Any():
		t.Loop.Changed(i.Change)
	case i.Unsent != nil:
		t.fail(i.Unsent)
	case i.Reply != nil:
		if err := t.part.Replied(*i.Reply); err != nil {
			t.fail(err)
		}
	default:
		t.part.Handle(i.Message)
	}
	over = t.prompt.state == PromptFailed || t.part.Over()
	if !over && t.prompt.state == PromptAccepted {
		t.Loop.Accepted()
	}
	return over
}

// caughtUp sends the prompt of a resumed turn if the previous process of ductor did not send it.
func (t *Turn[M]) caughtUp() {
	switch {
	case t.prompt.state != PromptUnsent:
	case t.Loop.Cut():
		t.become(PromptFailed)
	default:
		t.send()
	}
}

// finish ends the turn in the session, emits the Result, and then ends the turn in the process.
func (t *Turn[M]) finish(end turn.End) {
	t.agent.Host().Peer().Forget(t.prompt.id)
	detached := end == turn.EndDetached
	phase, leaves := PhaseLeft, EndDetached // if ductor has detached, its next process continues the turn
	if !detached {
		phase, leaves = t.part.End(end)
	}
	for _, i := range append(t.Loop.Rest(), t.session.end(t, phase)...) {
		if !detached && !i.Any() && i.Reply == nil && i.Unsent == nil {
			t.part.Late(i.Message)
		}
	}
	if err := t.Loop.StopErr(); err != nil {
		t.session.opts.Logger.Error("an agent that does not answer did not end", "agent", string(t.session.opts.Agent),
			"pid", t.agent.Host().Program().PID(), "err", err)
	}
	t.part.Approvals().Close(detached)
	t.Out.Finish(t.result(end))
	t.agent.Host().TurnEnded(t.ctx, leaves)
}

func (t *Turn[M]) result(end turn.End) cli.Result {
	switch {
	case t.prompt.state != PromptFailed:
		return t.part.Result(end)
	case end == turn.EndTurn && t.ctx.Err() != nil:
		return cli.Cut(t.ctx, t.session.opts.Agent)
	case end == turn.EndTurn:
		return cli.Result{Err: t.prompt.failure}
	default:
		return t.Outcome(end)
	}
}

// Outcome returns the Result of a turn if the agent itself sent no result. end is the End that Loop.Run returned.
func (t *Turn[M]) Outcome(end turn.End) cli.Result {
	return t.Loop.Outcome(end, t.session.opts.Agent, t.agent.Host().Failure)
}
