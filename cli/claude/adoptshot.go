package claude

import (
	"context"

	"ductor/cli"
)

// leftShot is a turn with a process of its own that an earlier ductor left.
type leftShot struct {
	stream *cli.Stream
	run    cli.LeftRun
	format format
}

// adoptOneShot makes a session of a process of one turn.
func (p *Provider) adoptOneShot(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, agent, "a process of one turn is of no use to another")
	}
	attached, err := p.opts.Launcher.Attach(ctx, left.Run, 0)
	if err != nil {
		return nil, startFailure(err)
	}
	kept := readSetting(left.Setting)
	s := newOneShot(p, req.Home)
	stream := s.listen(newProcess(attached, leftPrompts(p.opts.PromptDir, kept.Files)), &cli.Past{Until: left.OutputEnd})
	s.stream, s.left = stream, &leftShot{stream: stream, run: left, format: kept.Format}
	s.running.Add(1)
	return s, nil
}

func (s *oneShot) takeLeft() *leftShot {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.left
	s.left = nil
	return left
}

// goOn goes on with a turn. Of the prompt is sent what did not reach Claude.
func (s *oneShot) goOn(ctx context.Context, left *leftShot, req cli.Request, em *cli.Emitter) {
	p := newParser(em, newMemory(), req.Dir)
	em.Past(left.stream.Clock(s.provider.opts.Now))
	var input []byte
	if !left.run.InputClosed {
		var err error
		if input, err = oneShotInput(left.format, req); err != nil {
			s.provider.opts.Logger.Warn("the prompt of a turn that was left cannot be read again", "err", err)
		}
	}
	s.run(ctx, left.stream, p, left.run, input)
}
