package copilot

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"ductor/cli"
)

// once is a session of which each turn is a process.
type once struct {
	provider *Provider
	home     string // where the session is kept

	mu      sync.Mutex
	id      cli.AgentSessionID
	stream  *cli.Stream // of the turn that runs
	adopted *adoptedOnce
	closed  bool
}

// adoptedOnce is a run that was left, until its turn is gone on with.
type adoptedOnce struct {
	stream *cli.Stream
	note   string
	asked  bool // the prompt had reached it
}

var _ cli.Session = (*once)(nil)

// Fits is true for the same session in the same home: everything else is said anew with each turn.
func (s *once) Fits(req cli.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && req.Home == s.home && req.Resume == s.id
}

// Info names the session, and the process while a turn runs.
func (s *once) Info() cli.SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := cli.SessionInfo{Agent: Agent, Mode: cli.OneShot, AgentSessionID: s.id, Alive: !s.closed}
	if s.stream != nil {
		info.PID = s.stream.Process().PID()
	}
	return info
}

// Close ends a turn that still runs, with everything it started.
func (s *once) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	stream := s.stream
	s.mu.Unlock()
	if stream == nil {
		return nil
	}
	return stream.Close(ctx)
}

// Detach lets go of a run that no turn was called for.
func (s *once) Detach() {
	s.mu.Lock()
	s.closed = true
	stream := s.stream
	s.stream = nil
	s.mu.Unlock()
	if stream != nil {
		stream.Detach()
	}
}

// Turn runs Copilot once; see cli.Session.
func (s *once) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := cli.NewEmitter(Agent, s.provider.opts.Now, emit)
	s.mu.Lock()
	adopted := s.adopted
	s.adopted = nil
	s.mu.Unlock()
	if adopted == nil && ctx.Err() != nil {
		out.Finish(cli.Cut(ctx, Agent))
		return
	}
	p := newParser(out, req)
	p.begun = true
	stream, asked := (*cli.Stream)(nil), false
	if adopted != nil {
		stream, asked, p.id = adopted.stream, adopted.asked, cli.AgentSessionID(adopted.note)
		out.Past(stream.Clock(s.provider.opts.Now))
	} else {
		var err error
		if stream, p.id, err = s.start(ctx, req); err != nil {
			out.Finish(cli.Result{Err: startFailure(err)})
			return
		}
	}
	out.Finish(s.run(ctx, stream, p, req, !asked))
}

// run takes a turn to its end.
func (s *once) run(ctx context.Context, stream *cli.Stream, p *parser, req cli.Request, ask bool) cli.Result {
	named := false
	end := stream.Turn(ctx, cli.TurnLoop{
		Begin: func() {
			if ask {
				// A prompt that cannot be written shows as the end of the turn.
				_ = stream.Send([]byte(promptOf(req)))
			}
			stream.CloseInput()
		},
		Handle: func(line []byte) bool {
			if len(line) == 0 {
				return false
			}
			e, err := decodeEvent(line)
			if err != nil {
				stream.Garbage(line)
				return false
			}
			if !named && p.id != "" {
				p.name()
			}
			named = true
			over, err := p.event(e)
			if err != nil {
				stream.Garbage(line)
			}
			return over
		},
		Interrupt: stream.Process().Interrupt,
		Out:       p.out,
	})
	if end == cli.EndDetached {
		s.ended("")
		return cli.Result{Detached: true}
	}
	r := onceResult(ctx, stream, end, p)
	if err := stream.Close(context.WithoutCancel(ctx)); err != nil && r.Err == nil && !r.Aborted {
		r.Err = cli.AsFailure(Agent, err)
	}
	s.ended(p.id)
	return r
}

// onceResult says how a turn ended. What Copilot itself completed went well, however it was ended since.
func onceResult(ctx context.Context, stream *cli.Stream, end cli.End, p *parser) cli.Result {
	if p.ended && !p.aborted && (end == cli.EndTurn || end == cli.EndExit || p.failure == nil) {
		return p.outcome()
	}
	if p.failure != nil && end == cli.EndExit {
		return p.told(cli.Result{Err: p.failure})
	}
	if end == cli.EndTurn { // it was interrupted by somebody else
		return p.outcome()
	}
	r := stream.Outcome(ctx, end)
	if end == cli.EndExit {
		r.Err = exitFailure(r.Err)
	}
	return p.told(r)
}

// start starts a process for req, and says the session's name if it is known beforehand.
func (s *once) start(ctx context.Context, req cli.Request) (*cli.Stream, cli.AgentSessionID, error) {
	if f := refused(req); f != nil {
		return nil, "", f
	}
	if req.Resume == "" {
		req.Resume = s.Info().AgentSessionID
	}
	id := req.Resume
	if id == "" && !req.Continue {
		if id = req.NewSessionID; id == "" {
			id = cli.AgentSessionID(uuid.NewString())
		}
	}
	args, err := onceArgs(req, id)
	if err != nil {
		return nil, "", cli.Failf(cli.Refused, Agent, "%v", err)
	}
	o := s.provider.opts
	process, err := o.Launcher.Start(ctx, cli.Command{
		Path: o.Path, Args: args, Dir: req.Dir, Env: s.provider.environment(req), Turn: req.Turn,
		For: cli.Purpose{Agent: Agent, Mode: cli.OneShot, Conversation: req.Conversation, Setting: string(id)},
	})
	if err != nil {
		return nil, "", err
	}
	stream := cli.NewStream(process, s.provider.streamOptions(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = stream
	return stream, id, nil
}

func (p *Provider) streamOptions(past *cli.Past) cli.StreamOptions {
	return cli.StreamOptions{Agent: Agent, Stall: p.opts.Stall, ToolStall: p.opts.ToolStall, Grace: p.opts.Grace, Past: past}
}

func (s *once) ended(id cli.AgentSessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = nil
	if id != "" {
		s.id = id
	}
}

// adoptOnce attaches to a one-shot run. Its Setting is the name of its session.
func (p *Provider) adoptOnce(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "a run of one turn has no other")
	}
	process, err := p.opts.Launcher.Attach(ctx, left.Run, 0)
	if err != nil {
		return nil, startFailure(err)
	}
	stream := cli.NewStream(process, p.streamOptions(&cli.Past{Until: left.OutputEnd}))
	return &once{
		provider: p, home: req.Home, id: req.Resume, stream: stream,
		adopted: &adoptedOnce{stream: stream, note: left.Setting, asked: left.InputEnd > 0 || left.InputClosed || !left.Alive},
	}, nil
}
