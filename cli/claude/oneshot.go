package claude

import (
	"context"

	"ductor/cli"
	"ductor/cli/turn"
)

// oneShot is a session that starts a process per turn.
type oneShot struct {
	*turn.OneShotSession
	provider *Provider
}

var _ cli.Session = (*oneShot)(nil)

func newOneShot(p *Provider, home string) *oneShot {
	return &oneShot{OneShotSession: turn.NewOneShotSession(agent, home), provider: p}
}

// Turn runs one prompt in a process of its own; see cli.Session. It returns when that process is gone,
// which is a moment after the result.
func (s *oneShot) Turn(ctx context.Context, req cli.Request, emit func(cli.Event)) {
	em := turn.NewEmitter(agent, s.provider.opts.Now, s.watch(emit))
	if stream, left := s.GoOn(); stream != nil {
		s.goOn(ctx, stream, left, req, em)
		return
	}
	if err := checkPrompt(req); err != nil {
		em.Finish(cli.Result{Err: cli.AsFailure(agent, err)})
		return
	}
	if req.Resume == "" {
		req.Resume = s.Info().AgentSessionID
	}
	f := formatOf(req)
	input, err := oneShotInput(f, req)
	if err != nil {
		em.Finish(cli.Result{Err: cli.Failf(cli.Refused, agent, "%v", err)})
		return
	}
	stream, err := s.start(ctx, f, req)
	if err != nil {
		em.Finish(cli.StartResult(ctx, agent, err))
		return
	}
	s.run(ctx, stream, newParser(em, newMemory(), req.Dir), nil, input)
}

// run takes the turn to its end; left is what is known of one that is resumed, nil for another.
func (s *oneShot) run(ctx context.Context, stream *turn.Stream, p *parser, left *cli.LeftRun, input []byte) {
	p.garbage = stream.Garbage
	end := s.loop(ctx, stream, p, left, input)
	s.end(ctx, stream, p, end)
}

func formatOf(req cli.Request) format {
	if len(req.Images) > 0 {
		return formatBlocks
	}
	return formatStream
}

func oneShotInput(f format, req cli.Request) ([]byte, error) {
	if f == formatBlocks {
		return userLine(req, "")
	}
	return []byte(promptOf(req)), nil
}

func (s *oneShot) loop(ctx context.Context, stream *turn.Stream, p *parser, left *cli.LeftRun, input []byte) turn.End {
	var sendErr error
	end := stream.Turn(ctx, turn.Loop[[]byte]{
		Begin: func() {
			sendErr = stream.SendOnly(input, left) // Claude waits for the end of its input before it begins
		},
		Handle:    func(raw []byte) bool { _, over := p.line(raw); return over },
		Interrupt: stream.Process().Interrupt,
		Out:       p.em,
	})
	if sendErr != nil {
		s.provider.opts.Logger.Warn("claude did not take its input", "err", sendErr)
	}
	p.em.Finish(turnResult(ctx, stream, end, p))
	return end
}

func (s *oneShot) start(ctx context.Context, f format, req cli.Request) (*turn.Stream, error) {
	proc, err := s.provider.launch(ctx, f, cli.OneShot, req)
	if err != nil {
		return nil, err
	}
	return s.Begin(ctx, proc, turn.StreamOptionsOf(s.provider.opts.ProviderOptions, agent))
}

// end lets a process that said its result write down its session and go, and makes it go if it does not.
func (s *oneShot) end(ctx context.Context, stream *turn.Stream, p *parser, end turn.End) {
	if end != turn.EndDetached && (p.phase == finished || p.phase == interrupted) {
		stream.Linger(ctx)
	}
	if err := s.End(ctx, stream, end); err != nil {
		s.provider.opts.Logger.Error("claude did not end", "err", err)
	}
}

func (s *oneShot) watch(emit func(cli.Event)) func(cli.Event) {
	return func(ev cli.Event) {
		if started, ok := ev.(cli.SessionStarted); ok {
			s.Named(started.AgentSessionID)
		}
		emit(ev)
	}
}

// adoptOneShot makes a session of a process of one turn.
func (p *Provider) adoptOneShot(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	s := newOneShot(p, req.Home)
	return s, s.Attach(ctx, p.opts.ProviderOptions, left, req, func(attached cli.Process) cli.Process {
		return newProcess(attached, leftPrompts(p.opts.PromptDir, readSetting(left.Setting).Files))
	})
}

// goOn goes on with a turn. Of the prompt is sent what did not reach Claude.
func (s *oneShot) goOn(ctx context.Context, stream *turn.Stream, left *cli.LeftRun, req cli.Request, em *turn.Emitter) {
	p := newParser(em, newMemory(), req.Dir)
	em.Past(stream.Clock(s.provider.opts.Now))
	var input []byte
	if !left.InputClosed {
		var err error
		if input, err = oneShotInput(readSetting(left.Setting).Format, req); err != nil {
			s.provider.opts.Logger.Warn("the prompt of a turn that was left cannot be read again", "err", err)
		}
	}
	s.run(ctx, stream, p, left, input)
}
