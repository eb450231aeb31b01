package clitest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"ductor/cli"
	"ductor/cli/turn"
	sim "ductor/internal/sim/agent"
)

// This file is a complete dialect of the scripted agent's own protocol (sim.PlainLine). It shows what a new live
// dialect needs. TestADialectIsSmall limits its size.

const plainAgent cli.Agent = "plain"

// plainProvider speaks sim.PlainLines.
type plainProvider struct{ opts cli.ProviderOptions }

var _ cli.Provider = plainProvider{}

func newPlain(o cli.ProviderOptions) plainProvider { return plainProvider{o.OrDefault("plain")} }

func (plainProvider) Agent() cli.Agent  { return plainAgent }
func (plainProvider) Modes() []cli.Mode { return []cli.Mode{cli.Live, cli.OneShot} }

func (p plainProvider) Auth(context.Context) cli.Auth {
	path, err := p.opts.Launcher.LookPath(p.opts.Path)
	if err != nil {
		return cli.Auth{State: cli.NotFound, Fix: "Install the scripted agent"}
	}
	return cli.Auth{State: cli.Authenticated, Path: path}
}

func (plainProvider) Models(context.Context) ([]cli.Model, error) {
	return []cli.Model{{Agent: plainAgent, ID: "script", Default: true}}, nil
}

func (p plainProvider) Open(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Session, error) {
	if mode == cli.OneShot {
		return &plainOnce{OneShotSession: turn.NewOneShotSession(plainAgent, req.Home), provider: p}, nil
	}
	proc, err := p.start(ctx, mode, req)
	if err != nil {
		return nil, err
	}
	o := p.stream()
	o.Idle = func([]byte) {} // the agent prints nothing between turns
	return &plainSession{provider: p, stream: turn.NewStream(proc, o), id: req.Resume}, nil
}

// start starts the agent. Errors are *cli.Failure.
func (p plainProvider) start(ctx context.Context, mode cli.Mode, req cli.Request) (cli.Process, error) {
	cmd := cli.Command{
		Path: p.opts.Path, Dir: req.Dir, Env: p.opts.ChildEnv(req, nil, nil),
		For: cli.Purpose{Agent: plainAgent, Mode: mode, Conversation: req.Conversation},
	}
	if mode == cli.OneShot {
		cmd.Turn = req.Turn
	}
	proc, err := p.opts.Launcher.Start(ctx, cmd)
	if err != nil {
		return nil, cli.StartFailure(plainAgent, err)
	}
	return proc, nil
}

func (p plainProvider) stream() turn.StreamOptions { return turn.StreamOptionsOf(p.opts, plainAgent) }

// Adopt continues a turn from its mark. The agent's output contains the whole turn, so nothing else is stored.
func (p plainProvider) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	var mark cli.Mark
	if left.Mode == cli.Live {
		i := slices.IndexFunc(left.Marks, func(m cli.Mark) bool { return m.Turn == req.Turn })
		if i < 0 {
			return nil, cli.Failf(cli.UnknownFailure, plainAgent, "the process knows nothing of this turn")
		}
		mark = left.Marks[i]
	}
	proc, err := p.opts.Launcher.Attach(ctx, left, mark.Output)
	if err != nil {
		return nil, cli.StartFailure(plainAgent, err)
	}
	o := p.stream()
	if left.Mode == cli.OneShot {
		s := &plainOnce{OneShotSession: turn.NewOneShotSession(plainAgent, req.Home), provider: p}
		s.Adopt(proc, o, left)
		return s, nil
	}
	o.Past, o.Held, o.Idle = &turn.Past{From: mark.Output, Until: left.OutputEnd}, true, func([]byte) {}
	adopted := &plainTurn{id: mark.Turn, adopted: true, asked: left.InputEnd > mark.Input}
	return &plainSession{provider: p, stream: turn.NewStream(proc, o), id: req.Resume, next: adopted}, nil
}

// plainSession is one process.
type plainSession struct {
	provider plainProvider
	stream   *turn.Stream

	mu   sync.Mutex
	id   cli.AgentSessionID
	next *plainTurn // the running turn, or the one to continue
}

// plainTurn is one turn.
type plainTurn struct {
	id      cli.TurnID
	adopted bool
	asked   bool // the agent has the prompt
	out     *turn.Emitter
	waits   *turn.Approvals[func(cli.Decision) []byte]
	done    sim.PlainLine
}

var _ cli.Decider = (*plainSession)(nil)

func (s *plainSession) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	s.mu.Lock()
	t := s.next
	if t == nil || !t.adopted || t.id != req.Turn {
		t = &plainTurn{id: req.Turn}
	}
	s.next = t
	s.mu.Unlock()
	var mark cli.Mark
	if !t.adopted {
		mark.Turn = req.Turn
	}
	s.run(ctx, t, req, emit, mark)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = nil
}

// run runs a turn to its end and emits its result.
func (s *plainSession) run(ctx context.Context, t *plainTurn, req cli.Request, emit func(cli.Event),
	mark cli.Mark) turn.End {
	t.out = turn.NewEmitter(plainAgent, s.provider.opts.Now, func(ev cli.Event) {
		emit(ev)
		if _, ok := ev.(cli.CaughtUp); ok {
			t.waits.Release()
		}
	})
	if ctx.Err() != nil {
		t.out.Finish(cli.Cut(ctx, plainAgent))
		return turn.EndCancelled
	}
	if req.Attended {
		t.waits = turn.NewApprovals[func(cli.Decision) []byte](t.out, nil)
	}
	if t.adopted {
		t.waits.Hold()
	}
	end := s.stream.Turn(ctx, turn.Loop[[]byte]{
		Begin:     func() { s.begin(t, req) },
		Handle:    func(raw []byte) bool { return s.line(t, raw) },
		Interrupt: func() error { return s.send(sim.PlainLine{Kind: "interrupt"}) },
		Waiting:   t.waits.Waiting,
		Out:       t.out,
		Mark:      mark,
	})
	t.waits.Close(end == turn.EndDetached)
	switch {
	case end != turn.EndTurn:
		t.out.Finish(s.stream.Outcome(end))
	case t.done.Error != "":
		t.out.Finish(cli.Result{Err: cli.Failf(cli.Refused, plainAgent, "%s", t.done.Error)})
	default:
		t.out.Finish(cli.Result{})
	}
	return end
}

// begin sends the prompt, unless the agent has it.
func (s *plainSession) begin(t *plainTurn, req cli.Request) {
	s.mu.Lock()
	id := s.id
	s.mu.Unlock()
	if !t.asked { // an error shows as the end of the process
		_ = s.send(sim.PlainLine{Kind: "prompt", ID: string(id), Text: req.Prompt, Allow: req.Permission == cli.Bypass})
	}
}

func (s *plainSession) send(l sim.PlainLine) error { return s.stream.Send(plainBytes(l)) }

func plainBytes(l sim.PlainLine) []byte {
	raw, err := json.Marshal(l)
	if err != nil {
		panic(err) // strings and a bool always encode
	}
	return append(raw, '\n')
}

// line handles a line of a turn. It reports whether the turn ended.
func (s *plainSession) line(t *plainTurn, raw []byte) (over bool) {
	var l sim.PlainLine
	if json.Unmarshal(raw, &l) != nil {
		s.stream.Garbage(raw)
		return false
	}
	switch l.Kind {
	case "session":
		s.mu.Lock()
		s.id = cli.AgentSessionID(l.ID)
		s.mu.Unlock()
		t.out.Session(cli.AgentSessionID(l.ID), "script")
	case "text":
		t.out.Text(l.ID, l.Text)
	case "think":
		t.out.Thinking(l.Text)
	case "tool":
		t.out.ToolStart(cli.ToolStarted{ID: cli.ToolID(l.ID), Name: "shell", Title: l.Text})
	case "result":
		t.out.ToolEnd(cli.ToolEnded{ID: cli.ToolID(l.ID), Output: l.Text, Err: l.Error})
	case "ask":
		s.ask(t, l)
	case "done":
		t.done = l
		return true
	}
	return false
}

// ask asks the user, or denies the request if no user can be asked.
func (s *plainSession) ask(t *plainTurn, l sim.PlainLine) {
	id := cli.ApprovalID(l.ID)
	answer := func(d cli.Decision) []byte {
		return plainBytes(sim.PlainLine{Kind: "answer", ID: l.ID, Allow: d.Allow})
	}
	if t.waits == nil {
		_ = s.stream.Send(answer(cli.Decision{}))
		return
	}
	t.waits.Add(turn.Pending[func(cli.Decision) []byte]{ID: id, About: answer, Ask: func() cli.Event {
		return cli.ApprovalAsked{ID: id, Tool: "shell", Title: l.Text, Deaf: true}
	}})
}

func (s *plainSession) Decide(_ context.Context, id cli.ApprovalID, d cli.Decision) error {
	s.mu.Lock()
	t := s.next
	s.mu.Unlock()
	if t == nil {
		return cli.ErrNotAsked
	}
	answer, ok := t.waits.Take(id)
	if !ok {
		return cli.ErrNotAsked
	}
	s.stream.Wake()
	return s.stream.Send(answer(d))
}

func (s *plainSession) Fits(req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return req.Resume == s.id
}

func (s *plainSession) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: plainAgent, Mode: cli.Live, AgentSessionID: s.id}
	if s.stream.Alive() {
		info.PID, info.Alive = s.stream.Process().PID(), true
	}
	return info
}

func (s *plainSession) Close(ctx context.Context) error { return s.stream.Close(ctx) }
func (s *plainSession) Detach()                         { s.stream.Detach() }

// plainOnce starts a process for each turn.
type plainOnce struct {
	*turn.OneShotSession
	provider plainProvider
}

func (o *plainOnce) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	stream, left := o.GoOn()
	if stream == nil {
		var err error
		if ctx.Err() == nil {
			stream, err = o.begin(ctx, req)
		}
		if stream == nil {
			turn.NewEmitter(plainAgent, o.provider.opts.Now, emit).Finish(cli.StartResult(ctx, plainAgent, err))
			return
		}
	}
	s := &plainSession{provider: o.provider, stream: stream, id: req.Resume}
	t := &plainTurn{adopted: left != nil, asked: left != nil && left.InputEnd > 0}
	end := s.run(ctx, t, req, emit, cli.Mark{})
	o.Named(s.id)
	if err := o.End(ctx, stream, end); err != nil {
		o.provider.opts.Logger.Error("the agent did not end", "err", err)
	}
}

func (o *plainOnce) begin(ctx context.Context, req cli.Request) (*turn.Stream, error) {
	proc, err := o.provider.start(ctx, cli.OneShot, req)
	if err != nil {
		return nil, err
	}
	return o.Begin(ctx, proc, o.provider.stream())
}
