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

// Phase is the phase of a Session.
type Phase string

// The phases of a session.
const (
	PhaseOpening Phase = "opening" // its inbox collects messages, and no turn gets them
	PhaseNew     Phase = "new"     // created, without a turn so far
	PhaseIdle    Phase = "idle"
	PhaseAdopted Phase = "adopted" // messages of a turn of the previous process of ductor wait for Turn
	PhaseRunning Phase = "running" // a turn gets the messages
	PhaseSpent   Phase = "spent"   // accepts no further turn in this process: child processes of a turn may run
	PhaseLeft    Phase = "left"    // detached; the next process of ductor reads the messages
	PhaseClosed  Phase = "closed"
)

// AgentSession is the dialect's part of a Session in one process.
type AgentSession[M any] interface {
	// ID returns the agent's ID of the session. It is available after Open and after each turn. It does not change, but
	// may be empty until the end of the first turn.
	ID() cli.AgentSessionID
	Host() *Process // constant
	// Open creates the session or resumes req.Resume.
	Open(ctx context.Context, req cli.Request) error
	// Fits reports whether the session's settings suit req. Session itself checks req.Resume and the process.
	Fits(req cli.Request) bool
	// Check returns an error if the agent would accept t.Req in no process. The current process may have ended.
	Check(t *Turn[M]) error
	// Begin adjusts the session to t.Req, unless t was adopted, and returns the dialect's part of the turn. It sends no
	// prompt.
	Begin(ctx context.Context, t *Turn[M]) (AgentTurn[M], error)
	// Stop ends the process of an agent that does not end a turn. It may spare a process in which other turns run.
	Stop(ctx context.Context, grace time.Duration) error
	// Goodbye ends the session before the session leaves its process. It returns how the session leaves.
	Goodbye(ctx context.Context, was Phase) (Leaving, error)
	// Failure converts an error of the methods of AgentSession and AgentTurn to a failure.
	Failure(err error) *cli.Failure
}

// Dialect describes the sessions of a dialect.
type Dialect[M any] struct {
	// Join joins a process that suits req, and returns the session there. The session is not open yet. The dialect must
	// deliver the session's messages to s.
	Join func(ctx context.Context, s *Session[M], req cli.Request) (AgentSession[M], error)
	// Prompt is the prefix of the IDs of requests that start turns. The next process of ductor recognizes such requests
	// by the prefix.
	Prompt           string
	Start, Interrupt time.Duration // see turn.Limits
}

// Session is a session in a process that other sessions may share. If the process accepts no more turns, the session
// continues in another process.
//
// Only one goroutine at a time may call Turn and Fits, as cli.Session requires. All other methods are safe for
// concurrent use.
type Session[M any] struct {
	opts    *Options
	dialect *Dialect[M]

	mu    sync.Mutex
	phase Phase
	id    cli.AgentSessionID // empty before the first opening
	agent AgentSession[M]    // nil while the session is in no process
	inbox *turn.Queue[Item[M]]
	turn  *Turn[M] // the turn that is being prepared or running
	left  adopted
	over  chan struct{} // closed when Close has finished; nil before Close or Detach
	err   error         // the error of Close
}

// adopted is the position at which the previous process of ductor started a turn.
type adopted struct {
	mark cli.Mark
	sent bool // its prompt reached the agent
}

// NewSession returns a session that is not open yet.
func NewSession[M any, S Server](p *Pool[S], d *Dialect[M]) *Session[M] {
	return &Session[M]{opts: &p.opts, dialect: d, phase: PhaseOpening, inbox: turn.NewQueue[Item[M]](0)}
}

// Adopt returns the session of a turn that a request may resume. sent reports whether the turn's prompt reached the
// agent.
func Adopt[M any](d *Dialect[M], agent AgentSession[M], m cli.Mark, sent bool) *Session[M] {
	s := &Session[M]{
		opts: &agent.Host().pool.opts, dialect: d, phase: PhaseAdopted, inbox: turn.NewQueue[Item[M]](0),
		id: agent.ID(), agent: agent, left: adopted{mark: m, sent: sent},
	}
	_ = agent.Host().Peer().Expect(d.Prompt+string(m.Turn), s.replied) // fails only if there are too many turns
	return s
}

// errClosed returns the failure of a turn whose session was closed in the meantime.
func (s *Session[M]) errClosed() *cli.Failure {
	return cli.Failf(cli.UnknownFailure, s.opts.Agent, "the session is closed")
}

// Open opens the session in a process. If the process stops accepting sessions in the meantime, Open uses another
// process. Errors are *cli.Failure.
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

// opened stores the session's part in its process, and drops messages that have arrived so far. It returns false if the
// session is closed.
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

// reopen opens the session in another process. It creates a session without a turn anew.
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

// Agent returns the part of the session that the agent's protocol implements. It returns nil while no process has the
// session.
func (s *Session[M]) Agent() AgentSession[M] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent
}

// usable returns the dialect's part of the session, or nil if no turn may start in its process.
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
		same = same && s.id != "" // otherwise the agent ended its first turn without naming the session
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

// Running returns the dialect's part of the running turn, or nil. A turn is running from the sending of its prompt to
// its end.
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

// Commands implements cli.Commander. The AgentSession must implement cli.Commander, too.
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

// shut prevents further turns, and returns the current turn. first is false if an earlier call already did so.
func (s *Session[M]) shut() (t *Turn[M], first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first = s.over == nil; first {
		s.over = make(chan struct{})
	}
	return s.turn, first
}

// remove removes the session from its process and sets its phase to to. It returns the dialect's part of the session
// and the previous phase. If agent is not nil, the caller must call Leave on the agent's host.
func (s *Session[M]) remove(to Phase) (agent AgentSession[M], was Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	agent, was = s.agent, s.phase
	s.agent, s.phase = nil, to
	return agent, was
}

// Deliver passes an item of size bytes to the turn. It returns false if no turn can receive the item.
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

// Inbox returns the queue of a session that is being opened.
func (s *Session[M]) Inbox() *turn.Queue[Item[M]] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inbox
}

// begin directs all later messages to t. It returns false if the session accepts no turn.
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

// end stops directing messages to t. It returns the messages that t has not handled.
func (s *Session[M]) end(t *Turn[M], to Phase) []Item[M] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = t.agent.ID()
	if s.phase == PhaseRunning {
		s.phase = to
	}
	return s.inbox.Close()
}
