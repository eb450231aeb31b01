package codex

import (
	"context"

	"ductor/cli"
	"ductor/cli/turn"
)

// adoptExec makes a session of a `codex exec` that the previous process left in the middle of its turn.
func (p *Provider) adoptExec(ctx context.Context, left cli.LeftRun, req cli.Request) (cli.Session, error) {
	if req.Turn == "" {
		return nil, cli.Failf(cli.UnknownFailure, Agent, "a process of one turn is of no use to another")
	}
	process, err := p.opts.Launcher.Attach(ctx, left.Run, 0)
	if err != nil {
		return nil, cli.StartFailure(Agent, err)
	}
	s := p.newSession(req)
	s.Adopt(process, turn.StreamOptionsOf(p.opts.ProviderOptions, Agent), left)
	return s, nil
}
