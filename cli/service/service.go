// Package service runs turns with all agents. It finds the agent, keeps its session between turns, limits the number of
// processes, and repeats a failed turn if that is safe.
//
// The package translates no agent's protocol; see cli.Provider. It knows nothing of chats, queues or SQLite, and starts
// no processes itself; see cli.Launcher.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// Service runs turns with all agents, and keeps their sessions between turns. It holds no lock while it starts, queries
// or closes anything, so conversations never wait for each other. Safe for concurrent use.
type Service struct {
	*core
	shutdown context.CancelCauseFunc

	registry *Registry
	runEnvs  *runEnvs
	pool     *pool
	present  *present
	// home is the home of ductor's user. Its links are resolved only once, because an agent may change links while
	// ductor runs.
	home string

	leftMu    sync.Mutex
	left      map[cli.TurnID]*leftTurn // turns that Resume can continue
	attaching map[cli.RunID]int        // number of callers that want to attach to each run
}

// New creates a Service. The caller must Close it.
func New(opts Options) (*Service, error) {
	if len(opts.Providers) == 0 {
		return nil, errors.New("a service needs at least one provider")
	}
	opts.TurnTimeout = cmp.Or(opts.TurnTimeout, DefaultTimeout)
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
	if opts.Flush == nil {
		opts.Flush = func(context.Context) error { return nil }
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
	home, _ := os.UserHomeDir() // without a home directory, searches for project settings go up to the root
	s := &Service{
		core: &core{opts: opts, base: base, work: newGroup()}, shutdown: shutdown,
		registry: opts.Registry, left: map[cli.TurnID]*leftTurn{}, attaching: map[cli.RunID]int{},
		present: newPresent(), home: cli.RealPath(home),
	}
	if err := s.enterRunEnvs(); err != nil {
		s.shutdown(err)
		return nil, err
	}
	if s.runEnvs.get("").entry(opts.Default) == nil {
		err := fmt.Errorf("the default agent %q is not among the providers", opts.Default)
		s.shutdown(err)
		return nil, err
	}
	s.pool = newPool(s.core, s.launchers)
	if opts.maxMemory() > 0 || opts.Available != nil {
		s.work.spawn(s.watchMemory)
	}
	return s, nil
}

// Registry returns the registry of running turns in all environments.
func (s *Service) Registry() *Registry { return s.registry }

// Abort implements orchestrator.Gateway. It returns at once; Run returns when all processes have ended.
func (s *Service) Abort(conversation cli.Conversation) bool { return s.registry.Abort(conversation) }

// AbortTurn ends one turn, and returns at once. It returns false if the turn is not running.
func (s *Service) AbortTurn(turn cli.TurnID) bool { return s.registry.AbortTurn(turn) }

// Release implements orchestrator.Gateway. A session that runs a turn is closed after the turn.
func (s *Service) Release(conversation cli.Conversation) { s.pool.release(conversation) }

// Close ends every turn and every session, and waits until they have ended, or until ctx is done. The turns' Results
// say that ductor stops. Later calls of Run fail. Idempotent.
func (s *Service) Close(ctx context.Context) error {
	if err := s.finish(ctx, cli.ErrClosing, s.pool.closeAll); err != nil {
		return fmt.Errorf("close the agents: %w", err)
	}
	return nil
}

// Detach detaches from every turn, and from every session with background work. These continue, and the next process of
// ductor can find them. The turns' Results have Detached set. In all other respects, Detach works like Close.
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

// Run runs one turn with agent in the environment that req names. It emits the Result as the last event, and also
// returns the Result. It calls emit serially; emit must not block for long.
//
// Run ends the turn and everything that the turn started if ctx is cancelled, if Abort is called, or if the time limit
// is reached. The Result contains the text so far. Run emits the Result as soon as the agent is silent, and returns
// when all processes have ended.
//
// If a live process fails before it has emitted anything, Run repeats the turn in one-shot mode, and sets Fallback in
// the Result. Run never repeats a turn that may have had an effect.
func (s *Service) Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	return s.serve(ctx, agent, req, emit, s.turn)
}

// serve runs a turn by calling run, and keeps the turn registered meanwhile.
func (s *Service) serve(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event),
	run func(context.Context, *agentEntry, cli.Request, func(cli.Event)) cli.Result,
) cli.Result {
	if !s.work.enter() {
		return emitted(emit, s.refusal(agent))
	}
	defer s.work.Done()
	entry, failure := s.at(req.Sandbox, agent, req.Accounts[agent])
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
	if s.base.Err() != nil { // Close may have ended all registered turns just before this one was registered
		cancel(context.Cause(s.base))
	}
	ctx, stop := context.WithTimeout(ctx, s.limit(req))
	defer stop()
	return run(ctx, entry, req, emit)
}

// refusal returns the Result of a turn that comes after Close or Detach.
func (s *Service) refusal(agent cli.Agent) cli.Result {
	cause := context.Cause(s.base)
	if errors.Is(cause, cli.ErrDetached) {
		return cli.Result{Detached: true}
	}
	return cli.Result{Err: &cli.Failure{Kind: cli.UnknownFailure, Agent: agent, Own: lang.NewMessage("failure.closing"),
		Cause: cli.ErrClosing}}
}

// leastLimit is the least time that a turn gets. A resumed turn may have exceeded its limit while ductor was not
// running. Such a turn needs this time to read the agent's output.
const leastLimit = 10 * time.Second

// limit returns how much longer the turn may run.
func (s *Service) limit(req cli.Request) time.Duration {
	limit := s.opts.TurnTimeout
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
