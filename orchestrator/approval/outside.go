package approval

import (
	"context"

	"ductor/cli"
	"ductor/orchestrator"
)

// AskOutside has a user decide what an agent asks that ductor does not run, such as one in a terminal. of names it. No rule
// decides, and none is made. It waits for the decision, for
// its expiry or for the end of ctx, which withdraws the request.
func (s *Service) AskOutside(ctx context.Context, of Running, asked cli.Event) (cli.Decision, error) {
	of.Turn.ID = cli.TurnID(orchestrator.TerminalTurn + s.opts.NewID())
	of.Turn.Prompt.Rights = orchestrator.Rights{Of: orchestrator.RightsOfTerminal}
	of.Show = func(cli.Event) {}
	life := context.WithoutCancel(ctx)
	r := s.Open(life, of)
	defer s.WithdrawTurn(life, of.Turn.ID)
	defer r.Close()
	defer r.Drain()
	return s.Ask(ctx, of.Turn.ID, asked)
}
