package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"ductor/cli"
)

// Defaults of Options.
const (
	DefaultTimeout     = time.Hour
	DefaultIdleLimit   = 15 * time.Minute
	DefaultMemoryEvery = 15 * time.Second
	DefaultMenuTTL     = 5 * time.Minute
	DefaultMenuWait    = 15 * time.Second
)

// Options set up a Service. Providers, which are this host's, is required; zero values take the defaults.
type Options struct {
	Providers []cli.Provider
	Default   cli.Agent   // whom to ask when a conversation chose no agent; empty means the first provider
	Fallbacks []cli.Agent // whom to ask when Default cannot be used, in order; the other providers come after
	Modes     map[cli.Agent]cli.Mode

	Timeout   time.Duration // of a turn whose Request says none
	Grace     time.Duration // what a session may take to end a cancelled turn; the providers' own
	IdleLimit time.Duration // an idle session is closed after it
	// MaxSessions is how many agent processes there may be, those included that are being started or ended; 0 is
	// no limit. Beyond it the longest idle one is ended, and where all are busy a turn waits for one of them.
	// Sessions that share a process count once, and a process whose turns all wait for their user does not count.
	MaxSessions int
	// Available is how many bytes agents may still take; nil is no limit. A process is started only where it has
	// what one of its agent was seen to take; where it has not, idle ones are ended and the turn waits. One may
	// always live.
	Available func() int64
	// MaxMemory is how many bytes the agents and all they started may hold; 0 is no limit. Beyond it idle ones
	// are ended, the longest idle one first. A busy one never is.
	MaxMemory   int64
	MemoryEvery time.Duration // between two looks at that; one follows each turn besides

	MenuTTL  time.Duration // how old a list of models may be
	MenuWait time.Duration // how long an agent may take to list them

	Launchers []cli.Launcher // of this host: where runs of the previous process of ductor may be found
	Homes     Homes          // gives each session a home of its own on this host; nil: all have the user's
	RunEnvs   []RunEnv       // where agents run besides; no request that names one ever runs elsewhere
	// OpenRunEnv opens a place that one conversation has for itself, when it is first asked for; false where there is to be
	// none. It does not wait. Nil: there are none but RunEnvs.
	OpenRunEnv func(cli.Sandbox) (RunEnv, bool)

	Registry *Registry // shared with the sweep; nil makes one
	Now      func() time.Time
	Logger   *slog.Logger
}

// Service is the one gateway to all agents: it finds the agent, keeps its session warm between turns,
// runs the turn and recovers where that is safe. No lock is held while anything is started, asked or
// closed, so conversations never wait for each other. Safe for concurrent use.
type Service struct {
	opts     Options
	registry *Registry
	runEnvs  *runEnvs
	pool     *pool
	present  *present

	leftMu sync.Mutex
	left   map[cli.TurnID]*leftTurn // turns that can be resumed
	spared map[cli.RunID]int        // runs that somebody is about to attach to, and how many are

	base     context.Context // ends with Close
	shutdown context.CancelCauseFunc
	work     *group
}

// agentEntry is a provider in its place, with what it said lately.
type agentEntry struct {
	provider cli.Provider
	runEnv   *runEnv
	modes    *cached[[]cli.Mode]
	auth     *cached[authAnswer]
	models   *cached[modelList]
}

// New makes a Service. The caller must Close it.
func New(opts Options) (*Service, error) {
	if len(opts.Providers) == 0 {
		return nil, errors.New("a service needs at least one provider")
	}
	opts.Timeout = cmp.Or(opts.Timeout, DefaultTimeout)
	opts.Grace = cmp.Or(opts.Grace, cli.DefaultGrace)
	opts.IdleLimit = cmp.Or(opts.IdleLimit, DefaultIdleLimit)
	opts.MemoryEvery = cmp.Or(opts.MemoryEvery, DefaultMemoryEvery)
	opts.MenuTTL = cmp.Or(opts.MenuTTL, DefaultMenuTTL)
	opts.MenuWait = cmp.Or(opts.MenuWait, DefaultMenuWait)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if opts.Registry == nil {
		opts.Registry = NewRegistry(opts.Now)
	}
	if opts.Default == "" {
		opts.Default = opts.Providers[0].Agent()
	}
	s := &Service{opts: opts, registry: opts.Registry, left: map[cli.TurnID]*leftTurn{}, spared: map[cli.RunID]int{}, present: newPresent(), work: newGroup()}
	s.base, s.shutdown = context.WithCancelCause(context.Background())
	if err := s.enterSites(); err != nil {
		s.shutdown(err)
		return nil, err
	}
	if s.runEnvs.get("").agents[opts.Default] == nil {
		err := fmt.Errorf("the default agent %q is not among the providers", opts.Default)
		s.shutdown(err)
		return nil, err
	}
	s.pool = newPool(opts, s.work, s.base.Done(), s.launchers)
	if opts.MaxMemory > 0 || opts.Available != nil {
		s.work.spawn(s.watchMemory)
	}
	return s, nil
}

// Registry knows the turns that run, in whatever place.
func (s *Service) Registry() *Registry { return s.registry }

// Abort ends what runs for conversation, with everything it started; false if nothing ran. It returns at
// once: Run returns when all is dead.
func (s *Service) Abort(conversation cli.Conversation) bool { return s.registry.Abort(conversation) }

// AbortTurn ends one turn; false if it does not run. It returns at once.
func (s *Service) AbortTurn(turn cli.TurnID) bool { return s.registry.AbortTurn(turn) }

// Release closes the idle session kept for conversation, if there is one, without waiting for it. A
// session that is busy is closed at the end of its turn.
func (s *Service) Release(conversation cli.Conversation) { s.pool.release(conversation) }

// Close ends every turn (their Results say that ductor stops) and every session, and waits for them
// until ctx is done. A Run that begins later fails. Idempotent.
func (s *Service) Close(ctx context.Context) error {
	if err := s.finish(ctx, cli.ErrClosing, s.pool.closeAll); err != nil {
		return fmt.Errorf("close the agents: %w", err)
	}
	return nil
}

// Detach detaches from every turn and every session that works in the background: they go on, and ductor finds them after
// its next start. The Results of the turns have Detached set. Like Close in the rest.
func (s *Service) Detach(ctx context.Context) error {
	if err := s.finish(ctx, cli.ErrDetached, s.pool.detachAll); err != nil {
		return fmt.Errorf("detach from the agents: %w", err)
	}
	return nil
}

func (s *Service) finish(ctx context.Context, cause error, sessions func()) error {
	s.shutdown(cause)
	s.work.more()
	s.work.close()
	s.registry.endAll(cause)
	sessions()
	s.work.leave()
	return s.work.wait(ctx)
}

// Run runs one turn of req by agent, in the place that req names and in no other, and returns its Result, which emit got too, as the last event. emit
// is called from one goroutine at a time and must not block for long.
//
// A cancelled ctx, an Abort and the timeout end the turn and everything it started; what was written so
// far is kept. The Result goes to emit as soon as the agent is silent, Run returns when all of it is dead.
//
// A live agent that broke before it showed anything is asked once more, one-shot, and the Result is
// marked Fallback. Nothing that may have had an effect is ever repeated.
func (s *Service) Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	return s.serve(ctx, agent, req, emit, s.turn)
}

// serve registers a turn and has it run.
func (s *Service) serve(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event),
	run func(context.Context, *agentEntry, cli.Request, func(cli.Event)) cli.Result,
) cli.Result {
	if !s.work.enter() {
		return emitted(emit, s.refusal(agent))
	}
	defer s.work.leave()
	entry, failure := s.at(req.Sandbox, agent)
	if failure == nil {
		failure = entry.toolless(req)
	}
	if failure != nil {
		return emitted(emit, cli.Result{Err: failure})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	registered := s.registry.Register(req.Conversation, req.Turn, agent, cancel)
	defer s.registry.Unregister(registered)
	if s.base.Err() != nil { // Close may have ended all turns just before this one was there
		cancel(context.Cause(s.base))
	}
	ctx, stop := context.WithTimeout(ctx, s.limit(req))
	defer stop()
	return run(ctx, entry, req, emit)
}

// refusal is the Result of a turn that comes too late.
func (s *Service) refusal(agent cli.Agent) cli.Result {
	cause := context.Cause(s.base)
	if errors.Is(cause, cli.ErrDetached) {
		return cli.Result{Detached: true}
	}
	return cli.Result{Err: &cli.Failure{Kind: cli.UnknownFailure, Agent: agent, Reason: cli.ErrClosing.Error(), Cause: cli.ErrClosing}}
}

// leastLimit is what a turn gets whose time was up while no ductor was there: to read what it said.
const leastLimit = 10 * time.Second

// limit is how long a turn may run from now on.
func (s *Service) limit(req cli.Request) time.Duration {
	limit := s.opts.Timeout
	if req.Timeout > 0 {
		limit = req.Timeout
	}
	if req.Began.IsZero() {
		return limit
	}
	return max(limit-s.opts.Now().Sub(req.Began), leastLimit)
}

func emitted(emit func(cli.Event), r cli.Result) cli.Result {
	emit(r)
	return r
}
