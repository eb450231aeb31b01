package copilot

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"ductor/cli"
	"ductor/cli/turn"
)

// once is a session of which each turn is a process.
type once struct {
	*turn.OneShotSession
	provider *Provider
}

var _ cli.Session = (*once)(nil)

func (p *Provider) newOnce(req cli.Request) *once {
	s := &once{OneShotSession: turn.NewOneShotSession(Agent, req.Home), provider: p}
	s.Named(req.Resume)
	return s
}

// Turn runs Copilot once; see cli.Session.
func (s *once) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	out := turn.NewEmitter(Agent, s.provider.opts.Now, emit)
	p := newParser(out, req)
	p.begun = true
	stream, left, ok := s.Open(ctx, out, func() (stream *turn.Stream, err error) {
		stream, p.id, err = s.start(ctx, req)
		return stream, err
	})
	if !ok {
		return
	}
	if left != nil {
		p.id = cli.AgentSessionID(left.Setting)
		out.Past(stream.Clock(s.provider.opts.Now))
	}
	out.Finish(s.run(ctx, stream, p, req, left))
}

// run takes a turn to its end; left is what is known of one that is resumed, nil for another.
func (s *once) run(ctx context.Context, stream *turn.Stream, p *parser, req cli.Request, left *cli.LeftRun) cli.Result {
	named := false
	end := stream.Turn(ctx, turn.Loop[[]byte]{
		Begin: func() {
			_ = stream.SendOnly([]byte(promptOf(req)), left) // what cannot be written shows as the end of the turn
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
	if end == turn.EndDetached {
		_ = s.End(ctx, stream, end) // nothing is ended
		return cli.Result{Detached: true}
	}
	r := onceResult(ctx, stream, end, p)
	if err := s.End(ctx, stream, end); err != nil && r.Err == nil && !r.Aborted {
		r.Err = cli.AsFailure(Agent, err)
	}
	s.Named(p.id)
	return r
}

// onceResult says how a turn ended. What Copilot itself completed went well, however it was ended since.
func onceResult(ctx context.Context, stream *turn.Stream, end turn.End, p *parser) cli.Result {
	if p.ended && !p.aborted && (end == turn.EndTurn || end == turn.EndExit || p.failure == nil) {
		return p.outcome()
	}
	if p.failure != nil && end == turn.EndExit {
		return p.told(cli.Result{Err: p.failure})
	}
	if end == turn.EndTurn { // it was interrupted by somebody else
		return p.outcome()
	}
	r := stream.Outcome(end)
	if end == turn.EndExit {
		r.Err = exitFailure(r.Err)
	}
	return p.told(r)
}

// start starts a process for req, and says the session's name if it is known beforehand.
func (s *once) start(ctx context.Context, req cli.Request) (*turn.Stream, cli.AgentSessionID, error) {
	if f := refused(req); f != nil {
		return nil, "", f
	}
	if req.Resume == "" {
		req.Resume = s.Info().AgentSessionID
	}
	id := cmp.Or(req.Resume, req.NewSessionID, cli.AgentSessionID(uuid.NewString()))
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
		return nil, "", cli.StartFailure(Agent, err)
	}
	stream, err := s.Begin(ctx, process, turn.StreamOptionsOf(o.ProviderOptions, Agent))
	return stream, id, err
}

// adoptOnce attaches to a one-shot run. Its Setting is the name of its session.
func (p *Provider) adoptOnce(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "a run of one turn has no other")
	}
	process, err := p.opts.Launcher.Attach(ctx, left.Run, 0)
	if err != nil {
		return nil, cli.StartFailure(Agent, err)
	}
	s := p.newOnce(req)
	s.Adopt(process, turn.StreamOptionsOf(p.opts.ProviderOptions, Agent), left)
	return s, nil
}
