package acp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

const (
	historyWait  = 5 * time.Second        // for the replay of a loaded session
	historyQuiet = 150 * time.Millisecond // silence that ends the replay, too
	byeWait      = 500 * time.Millisecond // for the answer to session/close
)

// phase is the state of a session, which also determines whether it accepts a turn.
type phase string

// Phases of a session.
const (
	phaseOpening  phase = "opening"  // events wait in its inbox
	phaseNew      phase = "new"      // created, and without a turn so far
	phaseIdle     phase = "idle"     // accepts a turn
	phaseRunning  phase = "running"  // a turn handles events
	phaseBroken   phase = "broken"   // accepts no turn: its processes may still run, or the agent's offers are unknown
	phaseLeft     phase = "left"     // its turn was detached: the next process reads the events
	phaseDetached phase = "detached" // the session was detached too
	phaseClosed   phase = "closed"
)

// session is one of the agent's sessions.
//
// Turn and Fits are for one goroutine at a time, as cli.Session requires; everything else is safe at any time.
type session struct {
	process   *agentProcess
	id        cli.AgentSessionID
	settings  string
	workspace *workspace // serves files and commands to the agent
	inbox     *turn.Queue[item]
	adopted   *adopted // the turn to resume; nil once it started, and for new sessions

	mu     sync.Mutex
	phase  phase
	offers offers
	turn   turnState
	past   past
}

// past is the state after the earlier turns of a session.
type past struct {
	instructed string // the instructions it got
	totals     cli.Usage
	late       late
}

// offers are the choices that an agent offers in a session, and the current ones.
type offers struct {
	modes    []string
	mode     string
	models   []modelInfo
	model    string
	ownModel string // the agent's choice
	commands []cli.AgentCommand
}

// turnState is the state of the running turn.
type turnState struct {
	permission cli.PermissionMode    // the current one
	approvals  *turn.Approvals[*ask] // nil before the turn starts, and once it has ended
	marked     cli.Mark
	note       note
}

var (
	_ cli.Session = (*session)(nil)
	_ cli.Decider = (*session)(nil)
)

func newSession(proc *agentProcess, req cli.Request) *session {
	return &session{
		process: proc, settings: proc.options().settings(req), workspace: newWorkspace(proc, req), phase: phaseOpening,
		inbox: turn.NewQueue[item](0),
	}
}

// openSession creates or loads a session. Errors are *cli.Failure.
func openSession(ctx context.Context, proc *agentProcess, req cli.Request) (*session, error) {
	s := newSession(proc, req)
	params := sessionParams{Dir: req.Dir, MCP: mcpServers(req.Servers)}
	if proc.hello.Capabilities.Session.Dirs != nil {
		params.Dirs = req.AddDirs
	}
	begin := s.make
	if req.Resume != "" {
		begin = s.load
	}
	if err := begin(ctx, params, req); err != nil {
		proc.sessions.Remove(s.id, s)
		_ = s.workspace.close() // the open error is more useful
		return nil, err
	}
	return s, nil
}

func (s *session) make(ctx context.Context, params sessionParams, req cli.Request) error {
	made, err := s.request(ctx, methodNew, params, req)
	if err != nil {
		return s.process.options().failure(err)
	}
	if made.SessionID == "" {
		return cli.Failf(cli.BadOutput, s.process.options().Agent, "it gave a session without an id")
	}
	s.opened(made, phaseNew)
	s.process.offered.Store(&s.offers.modes)
	if err := s.register(cli.AgentSessionID(made.SessionID)); err != nil {
		return err
	}
	if early, ok := s.process.early.LoadAndDelete(s.id); ok {
		s.deliver(item{update: early.(*update)})
	}
	return nil
}

// request creates or loads a session. If the agent requires a log-in that needs no user, it logs in first.
func (s *session) request(ctx context.Context, method string, params sessionParams, req cli.Request) (got gotSession, err error) {
	err = s.process.call(ctx, method, params, &got)
	var refused *rpc.Error
	if !errors.As(err, &refused) || refused.Code != codeNoAuth || s.process.options().quirks.AuthMethod == nil {
		return got, err
	}
	login := s.process.options().quirks.AuthMethod(s.process.options().env(req))
	if login == "" || s.process.call(ctx, methodLogin, sessionParams{MethodID: login}, nil) != nil {
		return got, err
	}
	return got, s.process.call(ctx, method, params, &got)
}

// load resumes a session of an ended process. It drops the agent's replay.
func (s *session) load(ctx context.Context, params sessionParams, req cli.Request) error {
	o, caps := s.process.options(), s.process.hello.Capabilities
	method := methodLoad
	switch {
	case caps.Session.Resume != nil:
		method = methodResume
	case !caps.Load:
		return cli.Failf(cli.ResumeFailed, o.Agent, "it cannot go on with a session once its process has ended")
	}
	if err := s.register(req.Resume); err != nil {
		return err
	}
	params.SessionID = string(req.Resume)
	loaded, err := s.request(ctx, method, params, req)
	if err != nil {
		f := o.failure(err)
		var refused *rpc.Error
		if errors.As(err, &refused) && f.Kind != cli.NotLoggedIn {
			f.Kind = cli.ResumeFailed
		}
		return f
	}
	if method == methodLoad {
		s.passHistory(ctx)
	}
	s.opened(loaded, phaseIdle)
	if loaded.Modes != nil { // some agents report them only for new sessions
		s.process.offered.Store(&s.offers.modes)
	}
	return nil
}

// passHistory waits for the end of a loaded session's replay. Some agents replay after they answered.
func (s *session) passHistory(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	quiet := time.NewTimer(historyQuiet)
	defer quiet.Stop()
	for {
		select {
		case <-s.inbox.Ready():
			quiet.Reset(historyQuiet)
			items, _ := s.inbox.Take()
			ends := func(i item) bool { return i.update != nil && i.update.Kind == updateOffers }
			if s.process.options().quirks.LateHistory && slices.ContainsFunc(items, ends) {
				return
			}
		case <-quiet.C:
			return
		case <-s.process.Peer().Ended():
			return
		case <-ctx.Done():
			return
		}
	}
}

// opened records the agent's offers, and drops its output so far.
func (s *session) opened(got gotSession, to phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.offers.modes = to, []string{}
	_, _ = s.inbox.Take()
	if got.Modes != nil {
		s.offers.mode = got.Modes.Current
		for _, m := range got.Modes.Available {
			s.offers.modes = append(s.offers.modes, m.ID)
		}
	}
	if got.Models != nil {
		s.offers.models, s.offers.model, s.offers.ownModel = got.Models.Available, got.Models.Current, got.Models.Current
	}
}

// register registers s under the agent's id.
func (s *session) register(id cli.AgentSessionID) error {
	s.id = id
	if !s.process.sessions.Add(id, s) {
		return cli.Failf(cli.Refused, s.process.options().Agent, "another conversation uses this session")
	}
	return nil
}

// deliver passes an item to the running turn. It returns false for a question that no turn can answer.
func (s *session) deliver(i item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == phaseLeft || s.phase == phaseDetached { // the next process reads it
		return true
	}
	if i.update != nil && i.update.Kind == updateMode {
		s.offers.mode = i.update.ModeID
	}
	if i.update != nil && s.process.options().quirks.changesMode(i.update) {
		s.offers.mode = "" // a model can write such a chunk, so the named mode is not trusted
		return true
	}
	if i.update != nil && i.update.Kind == updateOffers {
		s.offers.commands = i.update.commands()
	}
	switch {
	case s.phase == phaseRunning || s.phase == phaseOpening:
		put(s.inbox, i)
	case s.phase == phaseIdle && i.update != nil:
		s.takeLate(i.update)
	}
	return i.ask == nil || s.phase == phaseRunning
}

// Changed delivers a change of the process's output.
func (s *session) Changed(c turn.Change) { s.deliver(item{Change: c}) }

// Fits reports whether the session can handle req unchanged.
func (s *session) Fits(req cli.Request) bool {
	want := s.process.options().settings(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.phase {
	case phaseNew:
		return s.settings == want && (req.Resume == "" || req.Resume == s.id)
	case phaseIdle, phaseRunning:
		return s.settings == want && req.Resume == s.id
	}
	return false
}

// Info describes the running process.
func (s *session) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: s.process.options().Agent, Mode: cli.Live, AgentSessionID: s.id}
	switch s.phase {
	case phaseNew, phaseIdle:
		info.Alive = s.process.Alive()
	case phaseDetached, phaseClosed:
		return info
	}
	info.PID = s.process.Program().PID()
	return info
}

// Close ends the session. The last session ends the process and everything it started.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	was := s.phase
	if was != phaseDetached {
		s.phase = phaseClosed
	}
	s.mu.Unlock()
	s.showLate()
	how := shared.Closed
	switch was {
	case phaseClosed, phaseDetached:
		return nil
	case phaseRunning, phaseBroken:
		how = shared.Broken
	default:
		s.sayGoodbye(ctx)
	}
	err := errors.Join(s.workspace.close(), s.process.Leave(ctx, how))
	s.process.sessions.Remove(s.id, s)
	return err
}

// sayGoodbye makes an agent that also serves other sessions close this one.
func (s *session) sayGoodbye(ctx context.Context) {
	if s.process.Alone() || s.process.hello.Capabilities.Session.Close == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, byeWait)
	defer cancel()
	if err := s.process.call(ctx, methodClose, sessionParams{SessionID: string(s.id)}, nil); err != nil {
		o := s.process.options()
		o.Logger.Debug("a session was not closed by its agent", "agent", string(o.Agent), "err", err)
	}
}

// Detach leaves the session to the next process, and the last session also the agent's process.
func (s *session) Detach() {
	s.mu.Lock()
	was := s.phase
	if was != phaseClosed {
		s.phase = phaseDetached
	}
	s.mu.Unlock()
	if was == phaseClosed || was == phaseDetached {
		return
	}
	// The agentProcess keeps the session registered: the next process answers the agent's current questions in it.
	_ = s.process.Leave(context.Background(), shared.Detaches) // detaching never fails
}
