package turn

import (
	"context"
	"errors"
	"sync"

	"ductor/cli"
)

// OneShotSession is which of the agent's sessions a session with a process per turn is, whose process runs, and how that is
// ended or detached from. Safe for concurrent use.
type OneShotSession struct {
	agent cli.Agent
	home  string // where the session is kept

	mu     sync.Mutex
	id     cli.AgentSessionID
	stream *Stream       // of the turn that runs, or of one to go on with; nil between turns
	over   chan struct{} // closed when stream's turn is
	left   *cli.LeftRun  // the turn to go on with; nil for none, and once it runs
	closed bool
}

// NewOneShotSession makes a session of agent that is kept in home and was never heard of; see Named.
func NewOneShotSession(agent cli.Agent, home string) *OneShotSession {
	return &OneShotSession{agent: agent, home: home}
}

// Adopt makes it the session of a turn that the previous process of ductor left, whose process p is, attached to from its first
// byte on.
func (s *OneShotSession) Adopt(p cli.Process, o StreamOptions, left cli.LeftRun) {
	o.Past = &Past{Until: left.OutputEnd}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.left, s.over = NewStream(p, o), &left, make(chan struct{})
}

// GoOn gives the turn that was adopted, once; nil and nil if there is none. Who takes it calls End.
func (s *OneShotSession) GoOn() (*Stream, *cli.LeftRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == nil {
		return nil, nil
	}
	left := s.left
	s.left = nil
	return s.stream, left
}

// Begin makes p the process of the turn that begins. Who calls it calls End, unless it gets an error: the session was
// closed by then, and p is ended.
func (s *OneShotSession) Begin(ctx context.Context, p cli.Process, o StreamOptions) (*Stream, error) {
	stream := NewStream(p, o)
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.stream, s.over = stream, make(chan struct{})
	}
	s.mu.Unlock()
	if closed {
		err := cli.Failf(cli.UnknownFailure, s.agent, "the session is closed")
		return nil, errors.Join(err, stream.Close(context.WithoutCancel(ctx)))
	}
	return stream, nil
}

// End ends the process of a turn that ended as how says, unless it was detached from. After an error it may still run:
// Close tries again, and tells its caller.
func (s *OneShotSession) End(ctx context.Context, stream *Stream, how End) error {
	var err error
	if how != EndDetached {
		err = stream.Close(context.WithoutCancel(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.stream = nil
	}
	close(s.over)
	return err
}

// Named remembers the agent's own name of the session; an empty one changes nothing.
func (s *OneShotSession) Named(id cli.AgentSessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		s.id = id
	}
}

// Fits is true as long as the session is the one req goes on with, in the same home: everything else is said anew
// with each turn.
func (s *OneShotSession) Fits(req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && req.Home == s.home && (s.id == "" || req.Resume == s.id)
}

// Info names the session, and the process while a turn runs. It never has one that could take another turn.
func (s *OneShotSession) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: s.agent, Mode: cli.OneShot, AgentSessionID: s.id}
	if s.stream != nil {
		info.PID = s.stream.Process().PID()
	}
	return info
}

// Close ends the process of a turn that runs, with all it started, and waits for that turn.
func (s *OneShotSession) Close(ctx context.Context) error {
	stream, over := s.shut()
	if stream == nil {
		return nil
	}
	err := stream.Close(ctx)
	s.forgo()
	select {
	case <-over:
		return err
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
}

// Detach detaches from a turn that was adopted and not resumed; otherwise nothing runs between turns.
func (s *OneShotSession) Detach() {
	stream, _ := s.shut()
	if stream == nil {
		return
	}
	stream.Detach()
	s.forgo()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = nil
}

// shut takes no further turn, and gives what runs.
func (s *OneShotSession) shut() (*Stream, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.stream, s.over
}

// forgo ends the turn that was adopted and not resumed.
func (s *OneShotSession) forgo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left != nil {
		s.left = nil
		close(s.over)
	}
}
