package claude

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"ductor/cli"
)

const (
	interruptID = "interrupt"
	// leaveWait is how long a process that is closed may take to end by itself before it is made to.
	leaveWait = 300 * time.Millisecond
)

// live is a process that takes turn after turn. When the process is gone, the next turn starts another
// that goes on with the session.
//
// Turn and Fits are for one goroutine at a time, as cli.Session says; the rest is safe at any time.
type live struct {
	provider     *Provider
	conversation cli.Conversation
	setting      setting // what the process was started with

	mu     sync.Mutex
	run    *liveRun // nil before the first start
	id     cli.AgentSessionID
	turns  int
	closed bool
	// spoiled is set while a turn runs and when it did not end by itself: a process that is closed then
	// is not waited for.
	spoiled bool
}

// liveRun is one process of a live session.
type liveRun struct {
	stream *cli.Stream
	mem    *memory
	idle   *idler
}

// setting is what binds a process: a request with other values needs another process.
type setting struct {
	args   []string  // without those that name the session and the system prompts
	system [2]string // the prompts that replace Claude's own and are added to it
	env    []string
	dir    string
	budget float64 // Claude counts it from the start of the process
	begin  [3]string
}

var _ cli.Session = (*live)(nil)

func newLive(p *Provider, req cli.Request) *live {
	return &live{provider: p, conversation: req.Conversation, setting: p.settingOf(req)}
}

func (p *Provider) settingOf(req cli.Request) setting {
	begin := [3]string{string(req.Resume), string(req.NewSessionID), fmt.Sprint(req.Continue)}
	budget := req.MaxBudgetUSD
	req.Resume, req.NewSessionID, req.Continue, req.MaxBudgetUSD = "", "", false, 0
	args, err := arguments(formatLive, req, promptFiles{})
	if err != nil {
		args = []string{err.Error()} // a mode that is not known fits nothing
	}
	replace, add := ownPrompts(req)
	return setting{args: args, system: [2]string{replace, add}, env: p.environment(req), dir: req.Dir, budget: budget, begin: begin}
}

// start starts a process for req. Errors are *cli.Failure.
func (s *live) start(ctx context.Context, req cli.Request) error {
	proc, err := s.provider.launch(ctx, formatLive, req)
	if err != nil {
		return err
	}
	o := s.provider.opts
	run := &liveRun{mem: newMemory()}
	run.idle = &idler{session: s, run: run, dir: req.Dir}
	run.idle.mu.Lock() // its first line may come before the stream has a name
	run.stream = cli.NewStream(proc, cli.StreamOptions{
		Agent: agent, Idle: run.idle.line, Stall: o.Stall, ToolStall: o.ToolStall, Grace: o.Grace,
	})
	run.idle.mu.Unlock()
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.run = run
	}
	s.mu.Unlock()
	if closed {
		_ = run.stream.Close(context.WithoutCancel(ctx))
		return cli.Failf(cli.UnknownFailure, agent, "the session is closed")
	}
	return nil
}

// Turn runs one prompt; see cli.Session.
func (s *live) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	em := cli.NewEmitter(agent, s.provider.opts.Now, s.watch(emit))
	if err := checkPrompt(req); err != nil {
		em.Finish(cli.Result{Err: cli.AsFailure(agent, err)})
		return
	}
	echo := uuid.NewString()
	prompt, err := userLine(req, echo)
	if err != nil {
		em.Finish(cli.Result{Err: cli.Failf(cli.Refused, agent, "%v", err)})
		return
	}
	run, err := s.ready(ctx, req)
	if err != nil {
		em.Finish(failedStart(ctx, err))
		return
	}
	s.mu.Lock()
	s.turns++
	s.spoiled = true // until the turn ended as it should
	s.mu.Unlock()
	p := newParser(em, run.mem, req.Dir)
	p.echo, p.garbage, p.unasked = echo, run.stream.Garbage, s.unasked()
	s.loop(ctx, run, p, prompt)
}

// failedStart is the result of a turn whose process did not start.
func failedStart(ctx context.Context, err error) cli.Result {
	if ctx.Err() != nil {
		return cli.Cut(ctx, agent)
	}
	return cli.Result{Err: cli.AsFailure(agent, err)}
}

// watch takes the session's id from the events that pass.
func (s *live) watch(emit func(cli.Event)) func(cli.Event) {
	return func(ev cli.Event) {
		if started, ok := ev.(cli.SessionStarted); ok {
			s.mu.Lock()
			s.id = started.AgentSessionID
			s.mu.Unlock()
		}
		emit(ev)
	}
}

// ready is the process for this turn: the one that is there, or another that goes on where it ended.
func (s *live) ready(ctx context.Context, req cli.Request) (*liveRun, error) {
	s.mu.Lock()
	run, id := s.run, s.id
	s.mu.Unlock()
	if run != nil && run.alive() {
		return run, nil
	}
	if run != nil {
		if err := run.stream.Close(ctx); err != nil {
			return nil, fmt.Errorf("close the former process: %w", err)
		}
		if f := run.idle.failure(); f != nil {
			return nil, f
		}
	}
	if id != "" {
		req.Resume = id
	}
	if err := s.start(ctx, req); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run, nil
}

func (r *liveRun) alive() bool {
	select {
	case <-r.stream.Process().Done():
		return false
	case <-r.stream.Ended():
		return false
	default:
		return true
	}
}

// loop takes the turn to its end and emits the result.
func (s *live) loop(ctx context.Context, run *liveRun, p *parser, prompt []byte) {
	var sendErr error
	end := run.stream.Turn(ctx, cli.TurnLoop{
		Begin: func() {
			if !run.idle.busy() {
				sendErr = run.stream.Send(prompt)
			}
		},
		Handle: func(raw []byte) bool {
			if run.idle.busy() { // a turn of Claude's own is on its way; ours comes after it
				run.idle.line(raw)
				if run.idle.busy() {
					return false
				}
				if ctx.Err() == nil {
					sendErr = run.stream.Send(prompt)
				}
				return ctx.Err() != nil
			}
			reply, over := p.line(raw)
			if reply != nil {
				sendErr = errors.Join(sendErr, run.stream.Send(reply))
			}
			return over
		},
		Interrupt: func() error { return run.stream.Send(controlLine(interruptID, "interrupt")) },
		Busy:      func() bool { return p.em.OpenTools() > 0 },
	})
	if sendErr != nil {
		s.provider.opts.Logger.Warn("claude did not take its input", "err", sendErr)
	}
	s.mu.Lock()
	s.spoiled = end != cli.EndTurn
	s.mu.Unlock()
	if p.doomed {
		if err := run.stream.Close(context.WithoutCancel(ctx)); err != nil {
			s.provider.opts.Logger.Error("claude did not end", "err", err)
		}
	}
	p.em.Finish(turnResult(ctx, run.stream, end, p))
}

// turnResult is how a turn ended: by Claude's own result, unless it is that of a turn we cut short.
func turnResult(ctx context.Context, stream *cli.Stream, end cli.End, p *parser) cli.Result {
	if p.ended && (end == cli.EndTurn || end == cli.EndExit || p.outcome.Err == nil && !p.cut) {
		return p.outcome
	}
	r := stream.Outcome(ctx, end)
	r.Usage, r.ByModel, r.CostUSD, r.Turns = p.outcome.Usage, p.outcome.ByModel, p.outcome.CostUSD, p.outcome.Turns
	r.Denials = p.told()
	if r.Err != nil && end == cli.EndExit {
		exitFailure(r.Err)
	}
	return r
}

// Fits says whether the process, and the session in it, are those req needs. A budget binds a process to
// one turn, because Claude counts it from the start of the process.
func (s *live) Fits(req cli.Request) bool {
	want := s.provider.settingOf(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || want.dir != s.setting.dir || want.system != s.setting.system || want.budget != s.setting.budget ||
		!slices.Equal(want.args, s.setting.args) || !slices.Equal(want.env, s.setting.env) {
		return false
	}
	if s.turns == 0 {
		return want.begin == s.setting.begin
	}
	return want.budget == 0 && req.Resume == s.id
}

// Info says what is running.
func (s *live) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: agent, Mode: cli.Live, AgentSessionID: s.id}
	if s.run != nil && !s.closed && s.run.alive() {
		info.PID, info.Alive = s.run.stream.Process().PID(), true
	}
	return info
}

// Close ends the process and all it started. An idle one is let end by itself first, which it does at
// once when its input ends.
func (s *live) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	run, spoiled := s.run, s.spoiled
	s.mu.Unlock()
	if run == nil {
		return nil
	}
	if !spoiled {
		run.leave(ctx)
	}
	if err := run.stream.Close(ctx); err != nil {
		return fmt.Errorf("close claude: %w", err)
	}
	return nil
}

func (r *liveRun) leave(ctx context.Context) {
	r.stream.CloseInput()
	wait := time.NewTimer(leaveWait)
	defer wait.Stop()
	select {
	case <-r.stream.Process().Done():
	case <-wait.C:
	case <-ctx.Done():
	}
}

// unasked hands the result of a turn that Claude began by itself to whoever wants it; nil if nobody does.
func (s *live) unasked() func(cli.Result) {
	if s.provider.opts.Unasked == nil {
		return nil
	}
	return func(r cli.Result) { s.provider.opts.Unasked(s.conversation, r) }
}
