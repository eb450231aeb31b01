package claude

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/cli/turn"
)

const (
	interruptID = "interrupt"
	// startWait is how long a new process may print nothing. This time does not include the model's answer, because a
	// process confirms its first prompt before it queries the model.
	startWait = 2 * time.Minute
	// leaveWait is the time for a process to end by itself after its input was closed. ductor then stops the process.
	leaveWait = 300 * time.Millisecond
	markWait  = time.Second
)

// live is a session whose process runs many turns. If the process has ended, the next turn starts another process,
// which resumes the session.
//
// Only one goroutine at a time may call Turn and Fits, as cli.Session requires. All other methods are safe for
// concurrent use.
type live struct {
	provider     *Provider
	conversation cli.Conversation
	setting      setting   // the settings with which the process started
	left         *leftTurn // the turn to resume after a restart of ductor; nil after the turn has started

	mu           sync.Mutex
	run          *liveRun  // nil before the first start
	turn         *liveTurn // nil if no turn is running
	id           cli.AgentSessionID
	turnSettings turnSettings // settings that apply in the process and can change between turns
	phase        sessionPhase
}

type sessionPhase int

const (
	unused   sessionPhase = iota // no turn has started
	ready                        // between two turns
	running                      // a turn is running
	cutShort                     // the last turn was interrupted; Close stops the process at once
	shut                         // closed or detached
)

type liveRun struct {
	stream  *turn.Stream
	process *process
	mem     *memory
	idle    *idler
	asked   openRequests
	hasRest atomic.Bool // whether Claude may still work on the last turn, although ductor ended the turn
}

var (
	_ cli.Session = (*live)(nil)
	_ cli.Decider = (*live)(nil)
	_ cli.Steerer = (*live)(nil)
)

// start starts a process for req. Errors are *cli.Failure.
func (s *live) start(ctx context.Context, req cli.Request) error {
	proc, err := s.provider.launch(ctx, formatLive, cli.Live, req)
	if err != nil {
		return err
	}
	run := s.listen(&process{Process: proc}, newMemory(), req.Dir, turn.StreamOptions{})
	s.mu.Lock()
	closed := s.phase == shut
	if !closed {
		s.run, s.turnSettings = run, turnSettingsOf(req)
	}
	s.mu.Unlock()
	if closed {
		_ = run.stream.Close(context.WithoutCancel(ctx))
		return cli.Failf(cli.UnknownFailure, agent, "the session is closed")
	}
	s.send(run, freshPrompts(req))
	return nil
}

func (s *live) listen(proc *process, mem *memory, dir string, o turn.StreamOptions) *liveRun {
	run := &liveRun{process: proc, mem: mem}
	run.idle = &idler{session: s, run: run, dir: dir}
	run.idle.mu.Lock() // until run.stream is set, no line may be handled
	defer run.idle.mu.Unlock()
	o.Agent, o.Idle = agent, run.idle.line
	o.Limits = turn.LimitsOf(s.provider.opts.ProviderOptions)
	if o.Limits.Stall > startWait {
		o.Limits.First = startWait
	}
	run.stream = turn.NewStream(proc, o)
	return run
}

// watch wraps emit and records the session's ID when Claude names it.
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

// send sends a line unless it is empty. It only logs errors, because an error means that the process has ended. ductor
// also detects the end of the process at the end of the output.
func (s *live) send(run *liveRun, line []byte) {
	if len(line) == 0 {
		return
	}
	if err := run.stream.Send(line); err != nil {
		s.provider.opts.Logger.Warn("claude did not take its input", "err", err)
	}
}

// ready returns a process for the turn: the current process, or a new one that resumes the session.
func (s *live) ready(ctx context.Context, req cli.Request) (*liveRun, error) {
	s.mu.Lock()
	run, id := s.run, s.id
	s.mu.Unlock()
	if run != nil && run.stream.Alive() {
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

// Fits implements cli.Session. A request fits even if it has another model, permission mode or effort, as long as the
// running process can change these settings. The turn then changes them before it sends the prompt.
func (s *live) Fits(req cli.Request) bool {
	want := s.provider.settingOf(formatLive, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == shut || !s.setting.fits(s.turnSettings, want) {
		return false
	}
	if s.phase == unused {
		return want.Begin == s.setting.Begin
	}
	return req.Resume == s.id
}

// Info implements cli.Session.
func (s *live) Info() cli.SessionInfo {
	s.mu.Lock()
	run, closed := s.run, s.phase == shut
	info := cli.SessionInfo{Agent: agent, Mode: cli.Live, AgentSessionID: s.id}
	s.mu.Unlock()
	if run != nil && !closed && run.stream.Alive() {
		info.PID, info.Alive, info.Background = run.stream.Process().PID(), true, run.hasBackgroundWork()
	}
	return info
}

// Close implements cli.Session. It first closes the input, so that an idle process can end by itself.
func (s *live) Close(ctx context.Context) error {
	run, was := s.shut()
	if run == nil {
		return nil
	}
	if was == unused || was == ready {
		run.leave(ctx)
	}
	if err := run.stream.Close(ctx); err != nil {
		return fmt.Errorf("close claude: %w", err)
	}
	return nil
}

// shut prevents further turns. It returns the process and the previous phase of the session.
func (s *live) shut() (run *liveRun, was sessionPhase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, s.phase = s.phase, shut
	return s.run, was
}

func (r *liveRun) leave(ctx context.Context) {
	r.stream.CloseInput()
	ctx, cancel := context.WithTimeout(ctx, leaveWait)
	defer cancel()
	r.stream.Linger(ctx)
}

// Detach implements cli.Session. Between two turns, it first records that ductor has handled all output.
func (s *live) Detach() {
	run, was := s.shut()
	if run == nil {
		return
	}
	if was == ready {
		s.markBackground(run)
	}
	run.stream.Detach()
}

func (r *liveRun) hasBackgroundWork() bool { return len(r.mem.tasks.list()) > 0 || r.idle.busy() }

// markBackground is called after ductor has handled all output that a process wrote between two turns. It stores the
// position in the output, if the process works in the background.
func (s *live) markBackground(run *liveRun) {
	if !run.stream.Alive() || !run.hasBackgroundWork() || run.idle.busy() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), markWait)
	defer cancel()
	if err := run.stream.Mark(ctx, cli.Mark{Turn: cli.BackgroundMark, Note: s.idleNote(run).String()}); err != nil {
		s.provider.opts.Logger.Warn("record that claude works in the background", "err", err)
	}
}

// idleNote returns the note that ductor stores while no turn is running.
func (s *live) idleNote(run *liveRun) note {
	run.idle.mu.Lock()
	defer run.idle.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return noteOf(s.id, run.mem, s.turnSettings, s.turnSettings)
}

// background returns a function that calls Options.Background with the result of a turn that Claude started itself. It
// returns nil if Options.Background is nil.
func (s *live) background() func(cli.BackgroundResult) {
	if s.provider.opts.Background == nil {
		return nil
	}
	return func(r cli.BackgroundResult) { s.provider.opts.Background(s.conversation, r) }
}

// idler handles the output of a live process while no turn of ductor is running. Claude itself may start a turn after
// the end of a background task. The output may also be the error of a process that could not resume its session.
type idler struct {
	session *live
	run     *liveRun
	dir     string

	mu      sync.Mutex
	decoder decoder
	parser  *parser // parser of the turn that Claude started; nil if none is running
	failed  *cli.Failure
}

// line handles one line of output while no turn of ductor is running. If Claude has started a turn itself, line handles
// all output of that turn, even if ductor starts a turn meanwhile.
func (i *idler) line(raw []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	l, err := i.decoder.decode(raw)
	if err != nil {
		return
	}
	if i.parser == nil && !begins(l) {
		i.betweenTurns(l)
		return
	}
	if i.parser == nil {
		em := turn.NewEmitter(agent, i.session.provider.opts.Now, i.session.watch(func(cli.Event) {}))
		i.parser = newParser(em, i.run.mem, i.dir)
		i.parser.phase = accepted // Claude started this turn itself, so there is no prompt for Claude to accept
	}
	reply, over := i.parser.take(l)
	i.session.send(i.run, reply)
	if over {
		i.finish()
	}
}

// betweenTurns handles a line that belongs to no turn. An error result outside of a turn means that the process could
// not start.
func (i *idler) betweenTurns(l *line) {
	i.run.mem.tasks.line(l)
	if l.Type == "control_response" && l.Response != nil {
		i.run.asked.answer(l.Response)
	}
	if l.Type == "result" && l.IsError {
		i.failed = resultFailure(l.resultFields, l.Subtype, trouble{})
	}
}

func (i *idler) finish() {
	p := i.parser
	i.parser = nil
	result := cli.BackgroundResult{
		Text: p.flow.em.Answer(), Model: p.outcome.Model, Consumed: p.outcome.Consumed, Task: p.task,
	}
	p.flow.em.Finish(p.outcome)
	// If Claude has finished a turn that ductor had ended early, users already have the Result. Report only the cost.
	if i.run.hasRest.Load() {
		result.Text, result.Task = "", ""
	}
	if hand := i.session.background(); hand != nil {
		hand(result)
	}
	i.record()
}

// record stores the position up to which ductor has handled the output between turns.
func (i *idler) record() {
	s := i.session
	s.mu.Lock()
	n := noteOf(s.id, i.run.mem, s.turnSettings, s.turnSettings)
	s.mu.Unlock()
	m := cli.Mark{Turn: cli.BackgroundMark}
	if len(n.start.Tasks) > 0 {
		m.Note = n.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), markWait)
	defer cancel()
	if err := i.run.stream.MarkIdle(ctx, m); err != nil {
		s.provider.opts.Logger.Warn("record what claude said in the background", "err", err)
	}
}

// busy reports whether a turn that Claude started is running.
func (i *idler) busy() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.parser != nil
}

// failure returns the reason why the process could not start, or nil if the reason is unknown.
func (i *idler) failure() *cli.Failure {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failed
}
