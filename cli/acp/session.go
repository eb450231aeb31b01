package acp

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
)

const (
	historyWait  = 5 * time.Second        // how long an agent may replay what a loaded session was
	historyQuiet = 150 * time.Millisecond // silence that ends it, too
	byeWait      = 500 * time.Millisecond // for session/close to be answered
)

// session is one of the agent's sessions.
//
// Turn and Fits are for one goroutine at a time, as cli.Session says; the rest is safe at any time.
type session struct {
	process   *agentProcess
	provider  *Provider
	id        cli.AgentSessionID
	settings  settings
	begin     cli.AgentSessionID // the session it was opened to resume
	workspace *workspace         // what is served to the agent
	inbox     *shared.Inbox[item]
	login     string   // the method to log in by; empty for none
	adopted   *adopted // the turn to resume; nil once it began, and for sessions of our own

	mu         sync.Mutex
	listening  bool // a turn takes what comes
	closed     bool
	detached   bool
	unusable   bool // what it started may still run
	foreign    bool // it is from Adopt, and what it offers is not known
	turns      int
	modes      []modeInfo
	mode       string
	switched   cli.PermissionMode // in the middle of the turn that runs; empty: as it was asked for
	models     []modelInfo
	model      string
	ownModel   string // the agent's choice
	instructed string // the instructions it was given
	totals     cli.Usage
	asks       map[cli.ApprovalID]*ask
	marked     cli.Mark // of the turn that runs
	note       note
	detaching  bool          // its turn was detached
	heard      chan struct{} // a token when something was said between turns
	offered    chan struct{} // closed when the agent listed its commands
}

var (
	_ cli.Session = (*session)(nil)
	_ cli.Decider = (*session)(nil)
)

func blankSession(proc *agentProcess, req cli.Request) *session {
	login := ""
	if method := proc.provider.opts.Quirks.AuthMethod; method != nil {
		login = method(req)
	}
	return &session{login: login,
		process: proc, provider: proc.provider, settings: proc.provider.settingsOf(req), begin: req.Resume,
		workspace: newWorkspace(proc, req), inbox: shared.NewInbox[item](), asks: map[cli.ApprovalID]*ask{},
		heard: make(chan struct{}, 1), offered: make(chan struct{}),
	}
}

// openSession makes or loads a session. Errors are *cli.Failure.
func openSession(ctx context.Context, proc *agentProcess, req cli.Request) (*session, error) {
	agent := proc.provider.opts.Agent
	servers, err := mcpServers(req.MCPConfig)
	if err != nil {
		return nil, cli.Failf(cli.Refused, agent, "%v", err)
	}
	s := blankSession(proc, req)
	params := newParams{Dir: req.Dir, MCP: servers}
	if proc.caps.Session.Dirs != nil {
		params.Dirs = req.AddDirs
	}
	if req.Resume != "" {
		err = s.load(ctx, params, req.Resume)
	} else {
		err = s.make(ctx, params)
	}
	if err != nil {
		proc.sessions.Remove(s.id, s)
		s.workspace.close()
		return nil, err
	}
	return s, nil
}

func (s *session) make(ctx context.Context, params newParams) error {
	var made newSession
	if err := s.opening(ctx, methodNew, params, &made); err != nil {
		return s.provider.failure(err)
	}
	if made.SessionID == "" {
		return cli.Failf(cli.BadOutput, s.provider.opts.Agent, "it gave a session without an id")
	}
	s.learn(made)
	s.provider.offers(s.modes)
	return s.register(cli.AgentSessionID(made.SessionID))
}

// opening makes or loads a session, after a log-in where the agent wants one that needs no user.
func (s *session) opening(ctx context.Context, method string, params newParams, result *newSession) error {
	err := s.process.call(ctx, method, params, result)
	var refused *rpc.Error
	if !errors.As(err, &refused) || refused.Code != codeNoAuth || s.login == "" {
		return err
	}
	if failed := s.process.call(ctx, methodLogin, loginParams{s.login}, nil); failed != nil {
		return err
	}
	return s.process.call(ctx, method, params, result)
}

// load resumes a session of a process that ended. It reports nothing of what the agent replays.
func (s *session) load(ctx context.Context, params newParams, id cli.AgentSessionID) error {
	agent, caps := s.provider.opts.Agent, s.process.caps
	method := methodLoad
	switch {
	case caps.Session.Resume != nil:
		method = methodResume
	case !caps.Load:
		return cli.Failf(cli.ResumeFailed, agent, "it cannot go on with a session once its process has ended")
	}
	if err := s.register(id); err != nil {
		return err
	}
	params.SessionID = string(id)
	var loaded newSession
	if err := s.opening(ctx, method, params, &loaded); err != nil {
		f := s.provider.failure(err)
		var refused *rpc.Error
		if errors.As(err, &refused) && f.Kind != cli.NotLoggedIn {
			f.Kind = cli.ResumeFailed
		}
		return f
	}
	s.learn(loaded)
	if loaded.Modes != nil { // some tell them of new sessions only
		s.provider.offers(loaded.Modes.Available)
	}
	if method == methodLoad && s.process.quirks.LateHistory {
		s.awaitHistory(ctx)
	}
	return nil
}

// awaitHistory waits until a session that was loaded is replayed.
func (s *session) awaitHistory(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	for {
		quiet := time.NewTimer(historyQuiet)
		select {
		case <-s.heard:
			quiet.Stop()
			continue
		case <-quiet.C:
		case <-s.offered:
		case <-s.process.Peer().Ended():
		case <-ctx.Done():
		}
		quiet.Stop()
		return
	}
}

func (s *session) learn(n newSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.Modes != nil {
		s.modes, s.mode = n.Modes.Available, n.Modes.Current
	}
	if n.Models != nil {
		s.models, s.model, s.ownModel = n.Models.Available, n.Models.Current, n.Models.Current
	}
}

// register gives s the name that the agent calls it by.
func (s *session) register(id cli.AgentSessionID) error {
	s.id = id
	if !s.process.sessions.Add(id, s) {
		return cli.Failf(cli.Refused, s.provider.opts.Agent, "another conversation uses this session")
	}
	return nil
}

// deliver hands an item to the turn that runs. It says false of a question that no turn can answer.
func (s *session) deliver(i item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.detached || s.detaching: // the next process reads it
		return true
	case s.closed:
		return false
	case s.listening:
		put(s.inbox, i)
		return true
	}
	s.between(i)
	return i.ask == nil
}

// between takes what comes while no turn runs. mu is held.
func (s *session) between(i item) {
	wake(s.heard)
	u, ok := readUpdate(i.update)
	if !ok {
		return
	}
	switch u.Kind {
	case updateMode:
		s.mode = u.ModeID
	case updateOffers:
		select {
		case <-s.offered:
		default:
			close(s.offered)
		}
	}
}

// Fits says whether the session can take req as it is.
func (s *session) Fits(req cli.Request) bool {
	want := s.provider.settingsOf(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.detached || s.foreign || !s.settings.equal(want) {
		return false
	}
	if s.turns == 0 {
		return req.Resume == s.begin || req.Resume == s.id
	}
	return req.Resume == s.id
}

// Info says what is running.
func (s *session) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: s.provider.opts.Agent, Mode: cli.Live, AgentSessionID: s.id}
	if !s.closed && !s.detached {
		info.PID, info.Alive = s.process.Program().PID(), s.process.Alive() && !s.unusable && !s.foreign
	}
	return info
}

// Close ends the session, and with the last one the process and everything it started.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	closed, detached, unusable := s.closed, s.detached, s.unusable
	s.closed = true
	s.mu.Unlock()
	if closed || detached {
		return nil
	}
	how := shared.Closed
	if unusable {
		how = shared.Broken
	}
	if !unusable && !s.process.Alone() && s.process.caps.Session.Close != nil {
		bye, cancel := context.WithTimeout(ctx, byeWait)
		defer cancel()
		if err := s.process.call(bye, methodClose, sessionParams{string(s.id)}, nil); err != nil {
			s.provider.opts.Logger.Debug("a session was not closed by its agent", "agent", string(s.provider.opts.Agent), "err", err)
		}
	}
	err := errors.Join(s.workspace.close(), s.process.Leave(ctx, how))
	s.process.sessions.Remove(s.id, s)
	return err
}

// Detach leaves the session to the next process, and with the last session also the agent's process.
func (s *session) Detach() {
	s.mu.Lock()
	gone := s.closed || s.detached
	s.detached = true
	s.mu.Unlock()
	if gone {
		return
	}
	// The agentProcess keeps the session: the next process answers what the agent asks for in it now.
	_ = s.process.Leave(context.Background(), shared.Detaches) // detaching has no error
}
