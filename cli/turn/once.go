package turn

import (
	"cmp"
	"context"

	"ductor/cli"
)

// OneShot describes how a provider runs turns that each have their own process.
type OneShot struct {
	Agent   cli.Agent
	Options cli.ProviderOptions
	// Input returns the complete input of the program for a request. If the turn is resumed, left describes its run;
	// otherwise left is nil. If Input returns an error for a new turn, the turn fails.
	Input func(req cli.Request, left *cli.LeftRun) ([]byte, error)
	// Start starts the process of a turn. It returns the process and its Purpose.Setting. Errors are *cli.Failure.
	Start func(ctx context.Context, req cli.Request) (p cli.Process, setting string, err error)
	// Read returns the functions that read the output of a turn.
	Read func(Once) Reading
}

// Once is one turn of a OneShot. The turn has its own process.
type Once struct {
	Stream  *Stream
	Out     *Emitter
	Req     cli.Request
	Left    *cli.LeftRun // the run of a resumed turn; nil for a new turn
	Setting string       // Purpose.Setting of the process
}

// Reading contains the functions with which a provider reads the output of a turn.
type Reading struct {
	Handle func(line []byte) (end bool)
	Mark   cli.Mark // the turn's mark; see Loop.Mark
	Result func(End) cli.Result
	// Said reports whether the program has printed its result. After the result, the program gets time to store its
	// session and exit. Without a result, or if Said is nil, ductor stops the program at once.
	Said func() bool
}

// oneShot is a session that starts a process for each turn.
type oneShot struct {
	*OneShotSession
	how *OneShot
}

var _ cli.Session = (*oneShot)(nil)

// Session returns a session for req. It starts nothing.
func (o *OneShot) Session(req cli.Request) cli.Session { return o.session(req) }

func (o *OneShot) session(req cli.Request) *oneShot {
	s := &oneShot{NewOneShotSession(o.Agent, req.Home), o}
	s.Named(req.Resume)
	return s
}

// Adopt returns a session for a turn that the previous process of ductor started; see cli.Provider.
func (o *OneShot) Adopt(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, o.Agent, "a process of one turn is of no use to another")
	}
	p, err := o.Options.Launcher.Attach(ctx, left, 0)
	if err != nil {
		return nil, cli.StartFailure(o.Agent, err)
	}
	s := o.session(req)
	s.Adopt(p, StreamOptionsOf(o.Options, o.Agent), left)
	return s, nil
}

// Turn implements cli.Session.
func (s *oneShot) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := NewEmitter(s.how.Agent, s.how.Options.Now, func(ev cli.Event) {
		if started, ok := ev.(cli.SessionStarted); ok {
			s.Named(started.AgentSessionID)
		}
		emit(ev)
	})
	t, input, err := s.open(ctx, req)
	if t.Stream == nil {
		out.Finish(cli.StartResult(ctx, s.how.Agent, err))
		return
	}
	t.Out = out
	read := s.how.Read(t)
	end := t.Stream.Turn(ctx, Loop[[]byte]{
		Begin: func() {
			_ = t.Stream.SendOnly(input, t.Left) // if sending fails, the end of the output shows it
		},
		Handle: read.Handle, Interrupt: t.Stream.Process().Interrupt, Out: out, Mark: read.Mark,
	})
	out.Finish(read.Result(end))
	if end != EndDetached && read.Said != nil && read.Said() {
		t.Stream.Linger(ctx)
	}
	if err := s.End(ctx, t.Stream, end); err != nil {
		s.how.Options.Logger.Error("an agent did not end", "agent", string(s.how.Agent), "err", err)
	}
}

// open returns the turn to resume, or a turn in a new process. If that is impossible, the returned turn has no Stream.
// Then either err is the reason, or ctx has ended.
func (s *oneShot) open(ctx context.Context, req cli.Request) (t Once, input []byte, err error) {
	t.Req = req
	if t.Stream, t.Left = s.GoOn(); t.Stream != nil {
		t.Setting = t.Left.Setting
		if input, err = s.how.Input(req, t.Left); err != nil {
			s.how.Options.Logger.Warn("cannot rebuild the prompt of a resumed turn", "agent", string(s.how.Agent),
				"err", err)
		}
		return t, input, nil
	}
	if ctx.Err() != nil {
		return t, nil, context.Cause(ctx)
	}
	if input, err = s.how.Input(req, nil); err != nil {
		return t, nil, err
	}
	t.Req.Resume = cmp.Or(req.Resume, s.Info().AgentSessionID)
	p, setting, err := s.how.Start(ctx, t.Req)
	if err == nil {
		t.Setting = setting
		t.Stream, err = s.Begin(ctx, p, StreamOptionsOf(s.how.Options, s.how.Agent))
	}
	return t, input, err
}
