package acp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/acp/workspace"
	"ductor/cli/rpc"
	"ductor/cli/shared"
	"ductor/cli/turn"
)

const (
	historyWait  = 5 * time.Second        // maximum time for the agent to send the history of a loaded session
	historyQuiet = 150 * time.Millisecond // silence after which the history is complete
	byeWait      = 500 * time.Millisecond // maximum time for the response to session/close
)

// live implements cli.Session.
type live struct{ *shared.Session[news] }

var _ interface {
	cli.Session
	cli.Decider
	cli.PermissionSetter
	cli.Commander
} = live{}

// session is one session of the agent, in one of its processes. It implements shared.AgentSession.
type session struct {
	live      *shared.Session[news]
	process   *agentProcess
	id        cli.AgentSessionID
	settings  string
	shown     []string             // project settings that the user was asked to allow; see checkShown
	workspace *workspace.Workspace // serves files and commands to the agent
	adopted   note                 // state of the turn to resume after a restart of ductor

	mu     sync.Mutex
	offers offers
	past   past
}

// past contains data from the earlier turns of a session.
type past struct {
	instructed string // system prompts that the session already contains
	absent     bool   // whether the user was warned about tool servers that the agent cannot reach
	totals     cli.Usage
	spent      *float64 // cost in US dollars, as the agent reports it; nil if unknown
	late       late
}

// offers contains the options that the agent offers in a session, with their current values.
type offers struct {
	options             configOptions
	model, mode, effort choice
	effortSet           bool // whether ductor changed the effort that the agent chose
	commands            []cli.AgentCommand
	title               string
}

// join creates a session in a process of the pool that suits the request.
func (p *Provider) join(ctx context.Context, s *shared.Session[news], req cli.Request) (
	shared.AgentSession[news], error) {
	if err := p.opts.checkProject(req); err != nil {
		return nil, err
	}
	shown := p.ProjectFiles()
	if p.opts.Resuming != nil && req.Resume != "" {
		if err := p.opts.Resuming(ctx, p.opts.env(req), req.Resume); err != nil {
			return nil, err
		}
	}
	key := p.opts.key(req)
	command, err := p.opts.command(req, key)
	if err != nil {
		return nil, err
	}
	proc, err := p.pool.Join(ctx, key, command)
	if err != nil {
		return nil, err
	}
	made := newSession(proc, s, req)
	made.shown = shown
	return made, nil
}

func newSession(proc *agentProcess, s *shared.Session[news], req cli.Request) *session {
	made := &session{live: s, process: proc, settings: proc.options().settings(req)}
	made.workspace = made.newWorkspace(req)
	return made
}

func (s *session) options() *Options { return s.process.options() }

// offersNow returns a copy of the options that the agent currently offers.
func (s *session) offersNow() offers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offers
}

func (s *session) ID() cli.AgentSessionID { return s.id }

func (s *session) Host() *shared.Process { return s.process.Process }

func (s *session) Stop(ctx context.Context, grace time.Duration) error {
	return s.process.StopAlone(ctx, grace)
}

func (s *session) Failure(err error) *cli.Failure { return s.options().failure(err) }

// Open creates or loads the session.
func (s *session) Open(ctx context.Context, req cli.Request) error {
	o := s.options()
	if err := cmp.Or(o.checkProject(req), s.process.checkShown(req, s.shown)); err != nil {
		return err
	}
	caps := s.process.hello.Capabilities
	params := sessionParams{Dir: req.Dir, Meta: o.meta(req), MCP: mcpServers(req.Servers, caps.MCP.HTTP)}
	if caps.Session.Dirs != nil {
		params.Dirs = req.AddDirs
	}
	if req.Resume != "" {
		return s.load(ctx, params, req)
	}
	return s.make(ctx, params, req)
}

func (s *session) make(ctx context.Context, params sessionParams, req cli.Request) error {
	made, err := s.request(ctx, methodNew, params, req)
	if err != nil {
		return err
	}
	if made.SessionID == "" {
		return cli.Failf(cli.BadOutput, s.options().Agent, "it gave a session without an id")
	}
	s.past.spent = new(float64)
	s.offered(made)
	if err := s.register(cli.AgentSessionID(made.SessionID)); err != nil {
		return err
	}
	if early, ok := s.process.early.LoadAndDelete(s.id); ok {
		s.observe(early.(*update))
	}
	return nil
}

// request sends a request that creates or loads a session. If the agent rejects the request because of a missing
// log-in, request logs in by a method that needs no user, and then sends the request again.
func (s *session) request(ctx context.Context, method string, params sessionParams, req cli.Request) (got gotSession,
	err error) {
	err = s.process.call(ctx, method, params, &got)
	var refused *rpc.Error
	if !errors.As(err, &refused) || refused.Code != codeNoAuth {
		return got, err
	}
	o := s.options()
	login := s.process.provider.authMethod(o, req)
	if login == "" {
		return got, err
	}
	if failed := s.process.logIn(ctx, login); failed != nil {
		return got, failed
	}
	return got, s.process.call(ctx, method, params, &got)
}

// load resumes a session that was created in an earlier process. It drops the history that the agent replays.
func (s *session) load(ctx context.Context, params sessionParams, req cli.Request) error {
	o, caps := s.options(), s.process.hello.Capabilities
	method := methodLoad
	switch {
	case caps.Session.Resume != nil:
		method = methodResume
	case !caps.Load:
		return cli.Failf(cli.ResumeFailed, o.Agent, "it cannot go on with a session once its process has ended")
	}
	if s.past.spent = s.process.provider.spent.cost(req.Resume); s.past.spent == nil && o.Spent != nil {
		s.past.spent = o.Spent(ctx, req.Resume)
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
	s.offered(loaded)
	return nil
}

// passHistory waits until the agent has replayed the history of a loaded session. Some agents continue the replay after
// they have responded to the request that loads the session.
func (s *session) passHistory(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	inbox, quiet := s.live.Inbox(), time.NewTimer(historyQuiet)
	defer quiet.Stop()
	for {
		select {
		case <-inbox.Ready():
			quiet.Reset(historyQuiet)
			items, _ := inbox.Take()
			ends := func(i shared.Item[news]) bool {
				return i.Message.update != nil && i.Message.update.Kind == updateOffers
			}
			if s.options().quirks.LateHistory && slices.ContainsFunc(items, ends) {
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

// offered records the options that the agent offers in the session. Some agents list their modes only for new sessions.
// A loaded session then gets the modes of the last new session.
func (s *session) offered(got gotSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got.Models != nil {
		s.offers.model = choice{values: got.Models.Available, current: got.Models.Current, original: got.Models.Current}
	}
	if got.Modes != nil {
		s.offers.mode = choice{values: got.Modes.Available, current: got.Modes.Current, original: got.Modes.Current}
	}
	s.configure(got.Options)
	last := &s.process.provider.offered
	if got.SessionID != "" || got.Modes != nil || s.offers.mode.option != "" {
		modes := s.offers.mode.values
		last.Store(&modes)
	} else if modes := last.Load(); modes != nil {
		s.offers.mode.values = *modes
	}
}

// register makes the process deliver the messages of the session with this ID to s. It returns a Failure if another
// conversation uses the session.
func (s *session) register(id cli.AgentSessionID) error {
	s.id = id
	if !s.process.sessions.Add(id, s) {
		return cli.Failf(cli.Refused, s.options().Agent, "another conversation uses this session")
	}
	return nil
}

// deliver passes a message to the running turn. It returns false if no turn is running. size is the size of the message
// in bytes, and end is the offset after the message in the agent's output.
func (s *session) deliver(n news, end int64, size int) bool {
	if n.update != nil && s.observe(n.update) {
		return true
	}
	taken := s.live.Deliver(shared.Item[news]{Message: n, End: end}, size)
	if !taken && n.update != nil {
		s.takeLate(n.update)
	}
	return taken
}

// observe records changed options, modes and costs from an update. It returns true if the running turn need not handle
// the update.
func (s *session) observe(u *update) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	isModeNotice := s.options().quirks.IsModeNotice
	switch {
	case u.Kind == updateMode:
		s.offers.mode.current = u.ModeID
	case u.Kind == updateOptions:
		s.configure(u.Options)
		return true
	case u.Kind == updateInfo && u.titled:
		s.offers.title = cli.OneLine(u.Title, maxLabel)
	case u.Kind == updateMessage && isModeNotice != nil && isModeNotice(u.Content.Text()):
		// The model may also write such a text. So ductor no longer knows in which mode the agent is.
		s.offers.mode.current = ""
		return true
	case u.Kind == updateOffers:
		s.offers.commands = u.commands()
	case u.Kind == updateUsage && u.Cost.Currency == "USD":
		s.past.spent = &u.Cost.Amount
		s.process.provider.spent.record(s.id, u.Cost.Amount)
	}
	return false
}

func (s *session) Changed(c turn.Change) { s.live.Changed(c) }

func (s *session) Fits(req cli.Request) bool { return s.settings == s.options().settings(req) }

// Goodbye implements shared.AgentSession. After an interrupted turn it returns shared.Broken: processes of the turn may
// still run, and ductor cannot distinguish them from the processes of other sessions.
func (s *session) Goodbye(ctx context.Context, was shared.Phase) (shared.Leaving, error) {
	s.showLate()
	s.mu.Lock()
	s.past.late.expected = false
	s.mu.Unlock()
	how := shared.Broken
	if was == shared.PhaseNew || was == shared.PhaseIdle {
		s.sayGoodbye(ctx)
		how = shared.Closed
	}
	s.process.sessions.Remove(s.id, s)
	return how, s.workspace.Close()
}

// sayGoodbye asks the agent to close this session, if the process also serves other sessions.
func (s *session) sayGoodbye(ctx context.Context) {
	if s.process.Alone() || s.process.hello.Capabilities.Session.Close == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, byeWait)
	defer cancel()
	if err := s.process.call(ctx, methodClose, sessionParams{SessionID: string(s.id)}, nil); err != nil {
		o := s.options()
		o.Logger.Debug("a session was not closed by its agent", "agent", string(o.Agent), "err", err)
	}
}
