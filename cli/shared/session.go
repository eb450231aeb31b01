package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

// Phase is the phase of a Session in its process.
type Phase string

// The phases of a session.
const (
	PhaseOpening Phase = "opening" // is being opened; messages that arrive in this phase are dropped
	PhaseNew     Phase = "new"     // open, but without a turn so far
	PhaseIdle    Phase = "idle"
	PhaseAdopted Phase = "adopted" // the session stores the messages of a resumed turn until Session.Turn is called
	PhaseRunning Phase = "running" // a turn handles the messages
	PhaseSpent   Phase = "spent"   // no turn may start in this process, because child processes of a turn may still run
	PhaseLeft    Phase = "left"    // ductor has detached; the next process of ductor will handle the messages
	PhaseClosed  Phase = "closed"
)

// AgentSession is the part of a Session that the provider implements. If the Session moves to another process, it gets
// another AgentSession.
type AgentSession[M any] interface {
	// ID returns the ID that the agent gave the session. It may return "" between Open and the end of the first turn.
	// Apart from that, the ID does not change after Open.
	ID() cli.AgentSessionID
	Host() *Process
	// Open creates the session or resumes req.Resume.
	Open(ctx context.Context, req cli.Request) error
	// Fits reports whether the session's settings allow it to run req. Session calls Fits only if req continues this
	// session, and the process is alive.
	Fits(req cli.Request) bool
	// Check returns an error if the agent does not support t.Req in any process. At the time of the call, the session's
	// process may have ended.
	Check(t *Turn[M]) error
	// Begin prepares the session for a turn, and returns the turn's AgentTurn. It changes the session's settings to
	// t.Req unless t was adopted. It does not send the prompt.
	Begin(ctx context.Context, t *Turn[M]) (AgentTurn[M], error)
	// Stop stops the process because the agent does not end a turn. If other turns run in the process, Stop may leave
	// it running.
	Stop(ctx context.Context, grace time.Duration) error
	// Goodbye ends the session in the agent. phase is the session's phase before the call. Session passes the returned
	// Leaving to Process.Leave.
	Goodbye(ctx context.Context, phase Phase) (Leaving, error)
	// Failure converts an error of another method of AgentSession or AgentTurn.
	Failure(err error) *cli.Failure
}

// Dialect contains what a provider defines for all of its sessions.
type Dialect[M any] struct {
	// Join joins a process that fits req, and returns a new AgentSession in that process. From now on, the provider
	// delivers the messages of this AgentSession to s. The caller calls AgentSession.Open.
	Join func(ctx context.Context, s *Session[M], req cli.Request) (AgentSession[M], error)
	// Prompt is the prefix of the IDs of requests that start turns. It identifies these requests after a restart of
	// ductor.
	Prompt           string
	Start, Interrupt time.Duration // limits of a turn; see turn.Limits
}

// Session implements cli.Session in a process that other sessions may use, too. If the process accepts no more turns,
// the session continues in another process.
//
// Only one goroutine at a time may call Turn and Fits, as cli.Session requires. All other methods are safe for
// concurrent use.
type Session[M any] struct {
	opts    *Options
	dialect *Dialect[M]

	mu    sync.Mutex
	phase Phase
	id    cli.AgentSessionID // empty before the first Open
	agent AgentSession[M]    // nil while the session is not in a process
	inbox *turn.Queue[Item[M]]
	turn  *Turn[M] // the turn that is being prepared, or is running
	left  adopted
	over  chan struct{} // not nil after Close or Detach was called; closed when they return
	err   error         // error of Close
}

type adopted struct {
	mark cli.Mark
	sent bool // whether the agent has received the turn's prompt
}

// NewSession returns a session for Open.
func NewSession[M any, S Server](p *Pool[S], d *Dialect[M]) *Session[M] {
	return &Session[M]{opts: &p.opts, dialect: d, phase: PhaseOpening, inbox: turn.NewQueue[Item[M]](0)}
}

// Adopt returns the session of a turn that the previous process of ductor started. sent is true if the agent has
// received the turn's prompt.
func Adopt[M any](d *Dialect[M], agent AgentSession[M], m cli.Mark, sent bool) *Session[M] {
	s := &Session[M]{
		opts: &agent.Host().pool.opts, dialect: d, phase: PhaseAdopted, inbox: turn.NewQueue[Item[M]](0),
		id: agent.ID(), agent: agent, left: adopted{mark: m, sent: sent},
	}
	_ = agent.Host().Peer().Expect(d.Prompt+string(m.Turn), s.replied) // fails only if too many answers are awaited
	return s
}

func (s *Session[M]) errClosed() *cli.Failure {
	return cli.Failf(cli.UnknownFailure, s.opts.Agent, "the session is closed")
}

// Open opens the session in a process. If that process stops accepting sessions meanwhile, Open tries another one.
// Errors are *cli.Failure.
func (s *Session[M]) Open(ctx context.Context, req cli.Request) error {
	for {
		agent, err := s.dialect.Join(ctx, s, req)
		if err != nil {
			return cli.AsFailure(s.opts.Agent, err)
		}
		f := s.errClosed()
		if err = agent.Open(ctx, req); err != nil {
			f = agent.Failure(err)
		} else if s.opened(agent, req) {
			return nil
		}
		again := err != nil && agent.Host().GivenUp() && ctx.Err() == nil
		if stopErr := s.leave(context.WithoutCancel(ctx), agent, PhaseOpening); stopErr != nil {
			f.Cause = errors.Join(f.Cause, stopErr)
		}
		if !again {
			return f
		}
	}
}

// opened stores agent as the session's AgentSession. The caller calls opened after agent.Open succeeded. opened drops
// the messages that the agent sent during the opening. It returns false if the session was closed meanwhile.
func (s *Session[M]) opened(agent AgentSession[M], req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return false
	}
	_, _ = s.inbox.Take()
	s.phase, s.agent, s.id = PhaseNew, agent, agent.ID()
	if req.Resume != "" {
		s.phase = PhaseIdle
	}
	return true
}

// reopen opens the session in another process. The session gets another ID if no turn has run in it yet.
func (s *Session[M]) reopen(ctx context.Context, req cli.Request) error {
	s.mu.Lock()
	was, agent := s.phase, s.agent
	if s.over != nil || was == PhaseLeft {
		s.mu.Unlock()
		return s.errClosed()
	}
	if was == PhaseNew {
		s.id = ""
	} else if s.id != "" {
		req.Resume = s.id
	}
	s.phase, s.agent, s.inbox = PhaseOpening, nil, turn.NewQueue[Item[M]](0)
	s.mu.Unlock()
	if agent != nil {
		if err := s.leave(context.WithoutCancel(ctx), agent, was); err != nil {
			return err
		}
	}
	return s.Open(ctx, req)
}

func (s *Session[M]) leave(ctx context.Context, agent AgentSession[M], was Phase) error {
	how, err := agent.Goodbye(ctx, was)
	return errors.Join(err, agent.Host().Leave(ctx, how))
}

// Agent returns the session's AgentSession, or nil while the session is not in a process.
func (s *Session[M]) Agent() AgentSession[M] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent
}

// usable returns the session's AgentSession, or nil if no turn may start in its process.
func (s *Session[M]) usable() AgentSession[M] {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.phase {
	case PhaseNew, PhaseIdle, PhaseAdopted:
		if s.over == nil {
			return s.agent
		}
	}
	return nil
}

// Fits implements cli.Session.
func (s *Session[M]) Fits(req cli.Request) bool {
	s.mu.Lock()
	agent, same := s.agent, req.Resume == s.id
	switch s.phase {
	case PhaseNew:
		same = same || req.Resume == ""
	case PhaseIdle:
		same = same && s.id != "" // the ID is empty if the agent did not name the session in its first turn
	default:
		same = false
	}
	s.mu.Unlock()
	return same && agent.Host().Alive() && agent.Fits(req)
}

// Info implements cli.Session.
func (s *Session[M]) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: s.opts.Agent, Mode: cli.Live, AgentSessionID: s.id}
	if s.agent == nil {
		return info
	}
	info.PID = s.agent.Host().PID()
	switch s.phase {
	case PhaseNew, PhaseIdle, PhaseRunning:
		info.Alive = s.agent.Host().Alive()
	}
	return info
}

// Running returns the AgentTurn of the running turn. It returns nil if no turn is running, or if the turn's prompt was
// not sent yet.
func (s *Session[M]) Running() AgentTurn[M] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn == nil || s.phase != PhaseRunning || s.turn.prompt.state == PromptUnsent {
		return nil
	}
	return s.turn.part
}

// Decide implements cli.Decider.
func (s *Session[M]) Decide(ctx context.Context, id cli.ApprovalID, d cli.Decision) error {
	if t := s.Running(); t != nil {
		return t.Decide(ctx, id, d)
	}
	return cli.ErrNotAsked
}

// Commands implements cli.Commander if the AgentSession does.
func (s *Session[M]) Commands(ctx context.Context) ([]cli.AgentCommand, error) {
	agent := s.Agent()
	if agent == nil {
		return nil, cli.ErrClosing
	}
	if commander, ok := agent.(cli.Commander); ok {
		return commander.Commands(ctx)
	}
	return nil, fmt.Errorf("ask %s for its commands: %w", s.opts.Agent, errors.ErrUnsupported)
}

// Close implements cli.Session. If a turn is running, Close ends it first.
func (s *Session[M]) Close(ctx context.Context) error {
	t, first := s.shut()
	if !first {
		select {
		case <-s.over:
			return s.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer close(s.over)
	if t != nil {
		t.stop(cli.ErrClosing)
		select {
		case <-t.done:
		case <-ctx.Done():
		}
	}
	if agent, was := s.remove(PhaseClosed); agent != nil {
		s.err = s.leave(ctx, agent, was)
	}
	return s.err
}

// Detach implements cli.Session.
func (s *Session[M]) Detach() {
	if _, first := s.shut(); !first {
		return
	}
	defer close(s.over)
	if agent, _ := s.remove(PhaseLeft); agent != nil {
		_ = agent.Host().Leave(context.Background(), Detaches) // detaching never fails
	}
}

// shut closes the session for new turns, and returns the current turn. It returns false if shut was called before.
func (s *Session[M]) shut() (t *Turn[M], first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first = s.over == nil; first {
		s.over = make(chan struct{})
	}
	return s.turn, first
}

// remove sets the session's phase, and takes the session out of its process. It returns the session's AgentSession and
// the previous phase. If agent is not nil, the caller must call Leave on the agent's host.
func (s *Session[M]) remove(phase Phase) (agent AgentSession[M], was Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	agent, was = s.agent, s.phase
	s.agent, s.phase = nil, phase
	return agent, was
}

// Deliver passes an item to the turn. size is the item's size in bytes. Deliver returns false if no turn will handle
// the item.
func (s *Session[M]) Deliver(i Item[M], size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.phase {
	case PhaseOpening, PhaseAdopted, PhaseRunning:
		s.inbox.Put(i, size)
	}
	return s.phase == PhaseAdopted || s.phase == PhaseRunning || s.phase == PhaseLeft
}

// Changed passes a change of the process's output to the turn.
func (s *Session[M]) Changed(c turn.Change) {
	i := Item[M]{Change: c}
	if agent := s.Agent(); c.Lost != nil && agent != nil {
		i.End = agent.Host().Peer().Handled()
	}
	s.Deliver(i, 0)
}

// Inbox returns the queue with the session's messages. Providers read it while they open the session.
func (s *Session[M]) Inbox() *turn.Queue[Item[M]] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inbox
}

// begin makes t the receiver of all later messages. It returns false if the session accepts no turn.
func (s *Session[M]) begin(t *Turn[M], agent AgentSession[M], part AgentTurn[M]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over != nil:
		return false
	case s.phase == PhaseNew, s.phase == PhaseIdle:
		s.inbox = turn.NewQueue[Item[M]](0)
	case s.phase != PhaseAdopted:
		return false
	}
	s.phase, t.inbox, t.agent, t.part = PhaseRunning, s.inbox, agent, part
	return true
}

// end makes the session deliver no more messages to t. It returns the messages that t has not handled.
func (s *Session[M]) end(t *Turn[M], to Phase) []Item[M] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = t.agent.ID()
	if s.phase == PhaseRunning {
		s.phase = to
	}
	return s.inbox.Close()
}
