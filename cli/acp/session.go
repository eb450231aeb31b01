package acp

import (
	"context"
	"errors"
	"sync"
	"time"

	"ductor/cli"
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
	host     *host
	provider *Provider
	id       cli.AgentSessionID
	setting  setting
	begin    cli.AgentSessionID // the session it was opened to go on with
	ground   *ground            // what is served to the agent
	inbox    *inbox
	login    string   // the method to log in by; empty for none
	adopted  *adopted // the turn to go on with; nil once it began, and for sessions of our own

	mu        sync.Mutex
	listening bool // a turn takes what comes
	closed    bool
	detached  bool
	spoiled   bool // what it started may still run
	stranger  bool // it was adopted, and what it offers is not known
	turns     int
	modes     []modeInfo
	mode      string
	switched  cli.PermissionMode // in the middle of the turn that runs; empty: as it was asked for
	models    []modelInfo
	model     string
	ownModel  string // the agent's choice
	told      string // the instructions it was given
	totals    cli.Usage
	asks      map[cli.AskID]*ask
	marked    cli.Mark // of the turn that runs
	note      note
	detaching bool          // its turn was let go of
	heard     chan struct{} // a token when something was said between turns
	offered   chan struct{} // closed when the agent told its commands
}

var (
	_ cli.Session = (*session)(nil)
	_ cli.Asker   = (*session)(nil)
)

func blankSession(h *host, req cli.Request) *session {
	login := ""
	if method := h.provider.opts.Quirks.AuthMethod; method != nil {
		login = method(req)
	}
	return &session{login: login,
		host: h, provider: h.provider, setting: h.provider.settingOf(req), begin: req.Resume,
		ground: newGround(h, req), inbox: newInbox(), asks: map[cli.AskID]*ask{},
		heard: make(chan struct{}, 1), offered: make(chan struct{}),
	}
}

// openSession makes or loads a session. Errors are *cli.Failure.
func openSession(ctx context.Context, h *host, req cli.Request) (*session, error) {
	agent := h.provider.opts.Agent
	servers, err := mcpServers(req.MCPConfig)
	if err != nil {
		return nil, cli.Failf(cli.Refused, agent, "%v", err)
	}
	s := blankSession(h, req)
	params := newParams{Dir: req.Dir, MCP: servers}
	if h.caps.Session.Dirs != nil {
		params.Dirs = req.AddDirs
	}
	switch {
	case req.Resume != "":
		err = s.load(ctx, params, req.Resume)
	case req.Continue:
		return nil, cli.Failf(cli.Refused, agent, "it cannot look for the newest session of a directory")
	default:
		err = s.make(ctx, params)
	}
	if err != nil {
		h.forget(s)
		s.ground.close()
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
	return s.host.register(s, cli.AgentSessionID(made.SessionID))
}

// opening makes or loads a session, after a log-in where the agent wants one that needs no person.
func (s *session) opening(ctx context.Context, method string, params newParams, result *newSession) error {
	err := s.host.call(ctx, method, params, result)
	var rpc *rpcError
	if !errors.As(err, &rpc) || rpc.Code != codeNoAuth || s.login == "" {
		return err
	}
	if failed := s.host.call(ctx, methodLogin, loginParams{s.login}, nil); failed != nil {
		return err
	}
	return s.host.call(ctx, method, params, result)
}

// load goes on with a session of an earlier process. What the agent replays of it is not told.
func (s *session) load(ctx context.Context, params newParams, id cli.AgentSessionID) error {
	agent, caps := s.provider.opts.Agent, s.host.caps
	method := methodLoad
	switch {
	case caps.Session.Resume != nil:
		method = methodResume
	case !caps.Load:
		return cli.Failf(cli.ResumeFailed, agent, "it cannot go on with a session once its process has ended")
	}
	if err := s.host.register(s, id); err != nil {
		return err
	}
	params.SessionID = string(id)
	var loaded newSession
	if err := s.opening(ctx, method, params, &loaded); err != nil {
		f := s.provider.failure(err)
		var rpc *rpcError
		if errors.As(err, &rpc) && f.Kind != cli.NotLoggedIn {
			f.Kind = cli.ResumeFailed
		}
		return f
	}
	s.learn(loaded)
	if loaded.Modes != nil { // some tell them of new sessions only
		s.provider.offers(loaded.Modes.Available)
	}
	if method == methodLoad && s.host.quirks.LateHistory {
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
		case <-s.host.pumped:
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
func (h *host) register(s *session, id cli.AgentSessionID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[string(id)] != nil {
		return cli.Failf(cli.Refused, h.provider.opts.Agent, "another conversation uses this session")
	}
	s.id = id
	h.sessions[string(id)] = s
	return nil
}

func (h *host) forget(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[string(s.id)] == s {
		delete(h.sessions, string(s.id))
	}
	for id, other := range h.prompts {
		if other == s {
			delete(h.prompts, id)
		}
	}
}

// deliver hands an item to the turn that runs. It says false of a question that nobody will answer.
func (s *session) deliver(i item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.detached || s.detaching: // it is for the next ductor
		return true
	case s.closed:
		return false
	case s.listening:
		s.inbox.put(i)
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
	want := s.provider.settingOf(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.detached || s.stranger || !s.setting.equal(want) {
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
	info := cli.SessionInfo{Agent: s.provider.opts.Agent, Mode: cli.Live, AgentSessionID: s.id, Via: Via}
	if !s.closed && !s.detached {
		info.PID, info.Alive = s.host.process.PID(), s.host.alive() && !s.spoiled && !s.stranger
	}
	return info
}

// Close ends the session, and with the last one the process and everything it started.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	closed, detached, spoiled := s.closed, s.detached, s.spoiled
	s.closed = true
	s.mu.Unlock()
	if closed || detached {
		return nil
	}
	if !spoiled && !s.host.alone() && s.host.caps.Session.Close != nil {
		bye, cancel := context.WithTimeout(ctx, byeWait)
		defer cancel()
		if err := s.host.call(bye, methodClose, sessionParams{string(s.id)}, nil); err != nil {
			s.provider.opts.Logger.Debug("a session was not closed by its agent", "agent", string(s.provider.opts.Agent), "err", err)
		}
	}
	err := errors.Join(s.ground.close(), s.host.leave(ctx, parting{spoiled: spoiled}))
	s.host.forget(s)
	return err
}

// Detach lets go of the session, and with the last one of the process.
func (s *session) Detach() {
	s.mu.Lock()
	gone := s.closed || s.detached
	s.detached = true
	s.mu.Unlock()
	if gone {
		return
	}
	// The host keeps knowing the session: what the agent asks for in it now is for the next ductor.
	_ = s.host.leave(context.Background(), parting{detached: true}) // letting go has no error
}
