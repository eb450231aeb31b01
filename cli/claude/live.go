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
	// startWait is how long a process may say nothing at all. It tells of its first prompt before it asks the model.
	startWait = 2 * time.Minute
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
	phase        sessionPhase
}

// sessionPhase is what a live session is about.
type sessionPhase int

const (
	unused   sessionPhase = iota // no turn ran in it
	ready                        // between two turns
	running                      // a turn runs
	cutShort                     // the last turn was cut short: a process that is closed then is not waited for
	shut                         // closed, or detached from
)

// liveRun is one process of a live session.
type liveRun struct {
	stream  *turn.Stream
	process *process
	mem     *memory
	idle    *idler
	asked   questions
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
		s.run, s.turnSettings = run, turnSettingsOf(formatLive, req)
	}
	s.mu.Unlock()
	if closed {
		_ = run.stream.Close(context.WithoutCancel(ctx))
		return cli.Failf(cli.UnknownFailure, agent, "the session is closed")
	}
	s.send(run, freshPrompts(req))
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
	if o.Limits.Stall > startWait {
		o.Limits.First = startWait
	}
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

// send sends a line, if there is one. That the process is gone is shown by the end of its output.
func (s *live) send(run *liveRun, line []byte) {
	if len(line) == 0 {
		return
	}
	if err := run.stream.Send(line); err != nil {
		s.provider.opts.Logger.Warn("claude did not take its input", "err", err)
	}
}

// ready is the process for this turn: the one that is there, or another that goes on where it ended.
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

// Fits says whether the process, and the session in it, are those req needs: another model, permission mode
// or effort is told to Claude at the beginning of the turn where the protocol can say it.
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

// Info says what is running.
func (s *live) Info() cli.SessionInfo {
	s.mu.Lock()
	run, closed := s.run, s.phase == shut
	info := cli.SessionInfo{Agent: agent, Mode: cli.Live, AgentSessionID: s.id}
	s.mu.Unlock()
	if run != nil && !closed && run.stream.Alive() {
		info.PID, info.Alive, info.Background = run.stream.Process().PID(), true, run.works()
	}
	return info
}

// Close ends the process and all it started. Close gives an idle one time to end first, which it does at
// once when its input ends.
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

// shut lets no further turn begin, and says what the session was about.
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

// Detach detaches from the process. Between two turns it records first that what the process said was dealt with.
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

// works says whether Claude does something in the background.
func (r *liveRun) works() bool { return len(r.mem.tasks.list()) > 0 || r.idle.busy() }

// markBackground records of a process between two turns that what it said was dealt with, and that it works in the
// background; nothing if it does not.
func (s *live) markBackground(run *liveRun) {
	if !run.stream.Alive() || !run.works() || run.idle.busy() {
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
func (s *live) background() func(cli.BackgroundResult) {
	if s.provider.opts.Background == nil {
		return nil
	}
	return func(r cli.BackgroundResult) { s.provider.opts.Background(s.conversation, r) }
}

// idler takes what a live process says between turns: a turn that Claude begins when a
// background task is done, or the end of a process that could not resume its session.
type idler struct {
	session *live
	run     *liveRun
	dir     string

	mu      sync.Mutex
	decoder decoder
	parser  *parser // of the turn that Claude began; nil when none runs
	failed  *cli.Failure
}

// line takes one line. It is called between turns, and within one only as long as busy says so.
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
		i.parser.phase = taken // no other turn waits for this one
	}
	reply, over := i.parser.take(l)
	i.session.send(i.run, reply)
	if over {
		i.finish()
	}
}

// betweenTurns takes a line outside of any turn. A result there is the answer to a start that failed.
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
	r := p.outcome
	r.Text = p.em.Answer()
	p.em.Finish(p.outcome)
	if hand := i.session.background(); hand != nil {
		hand(cli.BackgroundResult{Result: r, Task: p.task})
	}
	i.record()
}

// record has it stored how far what Claude says in the background was dealt with.
func (i *idler) record() {
	s := i.session
	s.mu.Lock()
	n := noteOf(s.id, i.run.mem, s.turnSettings, s.turnSettings)
	s.mu.Unlock()
	m := cli.Mark{Turn: cli.BackgroundMark}
	if len(n.Tasks) > 0 {
		m.Note = n.String()
	}
	ctx, cancel := context.WithTimeout(context.Background(), markWait)
	defer cancel()
	if err := i.run.stream.MarkIdle(ctx, m); err != nil {
		s.provider.opts.Logger.Warn("record what claude said in the background", "err", err)
	}
}

// busy says whether a turn of Claude's own runs.
func (i *idler) busy() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.parser != nil
}

// failure is why the process could not begin; nil if nothing is known.
func (i *idler) failure() *cli.Failure {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failed
}
