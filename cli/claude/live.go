package claude

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

const (
	interruptID = "interrupt"
	// leaveWait is how long a process that is closed may take to end at the end of its input before ductor stops it.
	leaveWait = 300 * time.Millisecond
	markWait  = time.Second
)

// live is a process that takes turn after turn. When the process is gone, the next turn starts another
// that goes on with the session.
//
// Turn and Fits are for one goroutine at a time, as cli.Session says; the rest is safe at any time.
type live struct {
	provider     *Provider
	conversation cli.Conversation
	setting      setting   // what the process was started with
	left         *leftTurn // the turn to go on with; nil for none, and once it runs

	mu           sync.Mutex
	run          *liveRun  // nil before the first start
	turn         *liveTurn // that runs; nil for none
	id           cli.AgentSessionID
	turnSettings turnSettings // how the process works now
	turns        int
	closed       bool
	// dirty is set while a turn runs and after one that ductor cut short: a process that is closed then
	// is not waited for.
	dirty bool
}

// liveRun is one process of a live session.
type liveRun struct {
	stream  *turn.Stream
	process *process
	mem     *memory
	idle    *idler
}

var (
	_ cli.Session = (*live)(nil)
	_ cli.Decider = (*live)(nil)
	_ cli.Steerer = (*live)(nil)
)

func newLive(p *Provider, req cli.Request) *live {
	s := &live{provider: p, conversation: req.Conversation, setting: p.settingOf(formatLive, req)}
	s.turnSettings = s.setting.Turn
	return s
}

// start starts a process for req. Errors are *cli.Failure.
func (s *live) start(ctx context.Context, req cli.Request) error {
	proc, err := s.provider.launch(ctx, formatLive, cli.Live, req)
	if err != nil {
		return err
	}
	run := s.listen(proc, newMemory(), req.Dir, turn.StreamOptions{})
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.run, s.turnSettings = run, turnSettingsOf(formatLive, req)
	}
	s.mu.Unlock()
	if closed {
		_ = run.stream.Close(context.WithoutCancel(ctx))
		return cli.Failf(cli.UnknownFailure, agent, "the session is closed")
	}
	return nil
}

// listen begins to read what proc says.
func (s *live) listen(proc *process, mem *memory, dir string, o turn.StreamOptions) *liveRun {
	run := &liveRun{process: proc, mem: mem}
	run.idle = &idler{session: s, run: run, dir: dir}
	run.idle.mu.Lock() // its first line may come before the stream has a name
	defer run.idle.mu.Unlock()
	o.Agent, o.Idle = agent, run.idle.line
	o.Limits = turn.LimitsOf(s.provider.opts.ProviderOptions)
	run.stream = turn.NewStream(proc, o)
	return run
}

// watch takes the session's id from the events that pass.
func (s *live) watch(emit func(cli.Event)) func(cli.Event) {
	return func(ev cli.Event) {
		if started, ok := ev.(cli.SessionStarted); ok {
			s.named(started.AgentSessionID)
		}
		emit(ev)
	}
}

func (s *live) named(id cli.AgentSessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
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

// Fits says whether the process, and the session in it, are those req needs: another model, permission mode
// or effort is told to Claude at the beginning of the turn where the protocol can say it. A budget binds a
// process to one turn, because Claude counts it from the start of the process.
func (s *live) Fits(req cli.Request) bool {
	want := s.provider.settingOf(formatLive, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.setting.fits(s.turnSettings, want) {
		return false
	}
	if s.turns == 0 {
		return want.Begin == s.setting.Begin
	}
	return want.Budget == 0 && req.Resume == s.id
}

// Info says what is running.
func (s *live) Info() cli.SessionInfo {
	s.mu.Lock()
	run, closed := s.run, s.closed
	info := cli.SessionInfo{Agent: agent, Mode: cli.Live, AgentSessionID: s.id}
	s.mu.Unlock()
	if run != nil && !closed && run.alive() {
		info.PID, info.Alive, info.Background = run.stream.Process().PID(), true, run.works()
	}
	return info
}

// Close ends the process and all it started. Close gives an idle one time to end first, which it does at
// once when its input ends.
func (s *live) Close(ctx context.Context) error {
	run, dirty := s.close()
	if run == nil {
		return nil
	}
	if !dirty {
		run.leave(ctx)
	}
	if err := run.stream.Close(ctx); err != nil {
		return fmt.Errorf("close claude: %w", err)
	}
	return nil
}

func (s *live) close() (run *liveRun, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.run, s.dirty
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

// Detach detaches from the process. Between two turns it records first that what the process said was dealt with.
func (s *live) Detach() {
	s.mu.Lock()
	idle := !s.closed && s.turns > 0 && !s.dirty
	s.closed = true
	run := s.run
	s.mu.Unlock()
	if run == nil {
		return
	}
	if idle {
		s.markBackground(run)
	}
	run.stream.Detach()
}

// works says whether Claude does something in the background.
func (r *liveRun) works() bool { return len(r.mem.tasks.list()) > 0 || r.idle.busy() }

// markBackground records of a process between two turns that what it said was dealt with, and that it works in the
// background; nothing if it does not.
func (s *live) markBackground(run *liveRun) {
	if !run.alive() || !run.works() || run.idle.busy() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), markWait)
	defer cancel()
	if err := run.stream.Mark(ctx, cli.Mark{Turn: cli.BackgroundMark, Note: s.idleNote(run).String()}); err != nil {
		s.provider.opts.Logger.Warn("record that claude works in the background", "err", err)
	}
}

// idleNote is what is known of a process between two turns.
func (s *live) idleNote(run *liveRun) note {
	run.idle.mu.Lock()
	defer run.idle.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return noteOf(s.id, run.mem, s.turnSettings, s.turnSettings)
}

// background hands on the result of a turn that Claude began; nil where the provider has no Background.
func (s *live) background() func(cli.Result) {
	if s.provider.opts.Background == nil {
		return nil
	}
	return func(r cli.Result) { s.provider.opts.Background(s.conversation, r) }
}
