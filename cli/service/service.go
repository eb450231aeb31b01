// Package service is the one gateway to all agents: it picks the agent, keeps its session between turns, limits how many
// processes there are, and recovers where that is safe.
//
// It knows no dialect: those come as cli.Providers. It knows nothing of chats, of queues or of SQLite, and starts no process.
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

// Service is the one gateway to all agents: it finds the agent, keeps its session warm between turns,
// runs the turn and recovers where that is safe. No lock is held while anything is started, asked or
// closed, so conversations never wait for each other. Safe for concurrent use.
type Service struct {
	*core
	shutdown context.CancelCauseFunc

	registry *Registry
	runEnvs  *runEnvs
	pool     *pool
	present  *present

	leftMu sync.Mutex
	left   map[cli.TurnID]*leftTurn // turns that can be resumed
	spared map[cli.RunID]int        // runs that somebody is about to attach to, and how many are
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
	if opts.Background == nil {
		opts.Background = func(context.Context, cli.Start) error { return nil }
	}
	if opts.Began == nil {
		opts.Began = func(context.Context, cli.AgentSessionID) error { return nil }
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
	base, shutdown := context.WithCancelCause(context.Background())
	s := &Service{
		core: &core{opts: opts, base: base, work: newGroup()}, shutdown: shutdown,
		registry: opts.Registry, left: map[cli.TurnID]*leftTurn{}, spared: map[cli.RunID]int{}, present: newPresent(),
	}
	if err := s.enterRunEnvs(); err != nil {
		s.shutdown(err)
		return nil, err
	}
	if s.runEnvs.get("").agents[opts.Default] == nil {
		err := fmt.Errorf("the default agent %q is not among the providers", opts.Default)
		s.shutdown(err)
		return nil, err
	}
	s.pool = newPool(s.core, s.launchers)
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
	s.registry.endAll(cause)
	sessions()
	s.work.close()
	if err := s.work.wait(ctx); err != nil {
		return err
	}
	<-s.pool.over
	return nil
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
	defer s.work.Done()
	entry, failure := s.at(req.Sandbox, agent)
	if failure == nil {
		req, failure = entry.limited(req)
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
