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
	p.phase = begun
	stream, left, ok := s.Open(ctx, out, func() (stream *turn.Stream, err error) {
		stream, p.session.AgentSessionID, err = s.start(ctx, req)
		return stream, err
	})
	if !ok {
		return
	}
	if left != nil {
		p.session.AgentSessionID = cli.AgentSessionID(left.Setting)
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
			if err == nil && !named && p.session.AgentSessionID != "" {
				p.name()
			}
			if err == nil {
				named = true
				err = p.event(e)
			}
			if err != nil {
				stream.Garbage(line)
			}
			return p.phase == ended
		},
		Interrupt: stream.Process().Interrupt,
		Out:       p.out,
	})
	if end == turn.EndDetached {
		_ = s.End(ctx, stream, end) // nothing is ended
		return cli.Result{Detached: true}
	}
	r := p.outcome(end, func() cli.Result { return stream.Outcome(end) })
	if err := s.End(ctx, stream, end); err != nil && r.Err == nil && !r.Aborted {
		r.Err = cli.AsFailure(Agent, err)
	}
	s.Named(p.session.AgentSessionID)
	return r
}

// start starts a process for req, and says the session's name if it is known beforehand.
func (s *once) start(ctx context.Context, req cli.Request) (*turn.Stream, cli.AgentSessionID, error) {
	if req.Task != cli.TaskPrompt {
		return nil, "", cli.CannotCompact(Agent)
	}
	if f := refused(req); f != nil {
		return nil, "", f
	}
	if req.Resume == "" {
		req.Resume = s.Info().AgentSessionID
	}
	id := cmp.Or(req.Resume, cli.AgentSessionID(uuid.NewString()))
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
	s := p.newOnce(req)
	return s, s.Attach(ctx, p.opts.ProviderOptions, left, req, nil)
}
