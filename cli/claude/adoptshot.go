package claude

import (
	"context"

	"ductor/cli"
	"ductor/cli/turn"
)

// adoptOneShot makes a session of a process of one turn.
func (p *Provider) adoptOneShot(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, agent, "a process of one turn is of no use to another")
	}
	attached, err := p.opts.Launcher.Attach(ctx, left.Run, 0)
	if err != nil {
		return nil, cli.StartFailure(agent, err)
	}
	s := newOneShot(p, req.Home)
	proc := newProcess(attached, leftPrompts(p.opts.PromptDir, readSetting(left.Setting).Files))
	s.Adopt(proc, turn.StreamOptionsOf(p.opts.ProviderOptions, agent), left)
	return s, nil
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
