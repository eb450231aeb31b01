package turn

import (
	"context"
	"errors"
	"sync"

	"ductor/cli"
)

// OneShotSession is the state of a session that starts a process for each turn. It consists of the running process and
// of the ID that the agent gave the session. Safe for concurrent use.
type OneShotSession struct {
	agent cli.Agent
	home  string // HOME in which the agent stores the session

	mu     sync.Mutex
	id     cli.AgentSessionID
	stream *Stream       // stream of the running turn, or of the turn that Adopt added; nil between turns
	over   chan struct{} // closed when the turn that uses stream is over
	left   *cli.LeftRun  // run of the turn that Adopt added, until GoOn returns it; otherwise nil
	closed bool
}

// NewOneShotSession returns a session that the agent stores in home. The session has no ID; see Named.
func NewOneShotSession(agent cli.Agent, home string) *OneShotSession {
	return &OneShotSession{agent: agent, home: home}
}

// Adopt adds a turn that the previous process of ductor started, so that GoOn can return it. p is the turn's process,
// attached at the start of its output.
func (s *OneShotSession) Adopt(p cli.Process, o StreamOptions, left cli.LeftRun) {
	o.Past = &Past{Until: left.OutputEnd}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream, s.left, s.over = NewStream(p, o), &left, make(chan struct{})
}

// GoOn returns the turn that Adopt added, and the turn's run. The caller must then call End. GoOn returns nil if Adopt
// added no turn, or if GoOn was called before.
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

// Begin makes p the process of a new turn. The caller must call End. If the session is closed, Begin stops p and
// returns an error.
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

// End stops the process of a turn, unless ductor detached from it (EndDetached). If End returns an error, the process
// may still be running; Close then tries again.
func (s *OneShotSession) End(ctx context.Context, stream *Stream, end End) error {
	var err error
	if end != EndDetached {
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

// Named stores the ID that the agent gave the session. It ignores an empty ID.
func (s *OneShotSession) Named(id cli.AgentSessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		s.id = id
	}
}

// Fits reports whether req continues this session in the same home. Other settings do not matter, because the agent
// gets them anew for each turn.
func (s *OneShotSession) Fits(req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && req.Home == s.home && (s.id == "" || req.Resume == s.id)
}

// Info describes the session, and the process of a running turn. It never sets Alive, because each turn needs a new
// process.
func (s *OneShotSession) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: s.agent, Mode: cli.OneShot, AgentSessionID: s.id}
	if s.stream != nil {
		info.PID = s.stream.Process().PID()
	}
	return info
}

// Close stops the process of a running turn and its descendants, and waits for the end of the turn.
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

// Detach closes the session. It also detaches from a turn that Adopt added and GoOn has not returned.
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

// shut closes the session for new turns, and returns the running turn.
func (s *OneShotSession) shut() (*Stream, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.stream, s.over
}

func (s *OneShotSession) forgo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left != nil {
		s.left = nil
		close(s.over)
	}
}
