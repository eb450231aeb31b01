package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// Helper is another agent that works for a running turn. Tools uses that agent's names of tools. The zero value is the
// turn's own agent.
type Helper struct {
	Agent cli.Agent
	Tools cli.ToolList
}

// AskFor asks a user to decide a request or answer a question. The request comes from a tool call of the agent of a
// running turn, or from a helper of that turn. The rules for the helper's agent and its tool lists apply. asked is a
// cli.ApprovalAsked or a cli.QuestionAsked; AskFor chooses its ID.
//
// AskFor waits for the decision or the expiry. If ctx ends, it withdraws the request. It returns ErrNoTurn if the turn
// is not running.
func (s *Service) AskFor(ctx context.Context, turn cli.TurnID, h Helper, asked cli.Event) (cli.Decision, error) {
	r := s.of(turn)
	if r == nil {
		return cli.Decision{}, orchestrator.ErrNoTurn
	}
	return r.ask(ctx, cli.ApprovalID("tool-"+random(5)), h, asked)
}

// ask is AskFor with an ID from the caller.
func (r *Requests) ask(ctx context.Context, id cli.ApprovalID, h Helper, asked cli.Event) (cli.Decision, error) {
	decided, err := r.expect(id, h)
	if err != nil {
		return cli.Decision{}, err
	}
	defer r.giveUp(id)
	switch ev := asked.(type) {
	case cli.ApprovalAsked:
		ev.ID = id
		asked = ev
	case cli.QuestionAsked:
		ev.ID = id
		asked = ev
	default:
		return cli.Decision{}, fmt.Errorf("ask the user: %T asks nothing", asked)
	}
	shown, _ := secrets.Clean(r.turn.Known(), asked)
	if !r.handleOwn(asked, shown) {
		return cli.Decision{}, orchestrator.ErrNoTurn
	}
	select {
	case d := <-decided:
		return d, nil
	case <-ctx.Done():
	case <-r.life.Done():
	}
	if !errors.Is(context.Cause(ctx), cli.ErrDetached) { // after a detach, the next process asks again
		r.handleOwn(cli.ApprovalWithdrawn{ID: id}, cli.ApprovalWithdrawn{ID: id})
	}
	if r.life.Err() != nil {
		return cli.Decision{}, context.Cause(r.life)
	}
	return cli.Decision{}, context.Cause(ctx)
}

// expect returns the channel for the decision on a request that ductor makes for the agent. The caller must call giveUp
// when it stops waiting.
func (r *Requests) expect(id cli.ApprovalID, of Helper) (<-chan cli.Decision, error) {
	decided := make(chan cli.Decision, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil {
		return nil, orchestrator.ErrNoTurn
	}
	r.own[id] = ownRequest{decided, of}
	return decided, nil
}

// ownRequest is a request that ductor makes for an agent.
type ownRequest struct {
	decided chan<- cli.Decision
	of      Helper
}

func (r *Requests) giveUp(id cli.ApprovalID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, id)
}

// handleOwn shows and handles an event that ductor itself created. It returns false if the agent has already ended the
// turn.
func (r *Requests) handleOwn(ev, shown cli.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil || r.life.Err() != nil {
		return false
	}
	r.turn.Show(shown)
	r.handleLocked(ev)
	return true
}

// AskForTerminal asks a user to decide a request of an agent that ductor does not run, such as an agent in a terminal.
// of names the agent. Rules do not apply, and no rule is created.
//
// AskForTerminal waits for the decision or the expiry. If ctx ends, it withdraws the request. If the cause is
// cli.ErrDetached, the request stays open instead: the agent repeats it to the next process under the same turn ID, and
// gets a decision that was made in between.
func (s *Service) AskForTerminal(ctx context.Context, of RunningTurn, asked cli.Event) (cli.Decision, error) {
	of.Turn.ID = orchestrator.TerminalTurn + cmp.Or(of.Turn.ID, cli.TurnID(s.opts.NewID()))
	of.Turn.Prompt.Rights = orchestrator.Rights{Of: orchestrator.RightsOfTerminal}
	of.Show = func(cli.Event) {}
	life := context.WithoutCancel(ctx)
	defer func() {
		if !errors.Is(context.Cause(ctx), cli.ErrDetached) {
			s.WithdrawTurn(life, of.Turn.ID)
		}
	}()
	if ctx.Err() != nil { // the approval expired while ductor was not running
		return cli.Decision{}, context.Cause(ctx)
	}
	r := s.Open(life, of)
	defer r.Close()
	defer r.Drain()
	d, err := r.ask(ctx, "terminal", Helper{}, asked)
	if d.Reason == goneSentence { // withdrawn because the agent had not asked again
		return cli.Decision{}, orchestrator.ErrApprovalWithdrawn
	}
	return d, err
}

// askAgainWait is how long ductor keeps a request of a terminal open after a start. The terminal must repeat the
// request within this time.
const askAgainWait = time.Minute

// awaitTerminal withdraws the request of a terminal unless the terminal asks again.
func (s *Service) awaitTerminal(turn cli.TurnID) {
	s.opts.After(askAgainWait, func() {
		leave, ok := s.opts.Enter()
		if !ok {
			return
		}
		defer leave()
		if s.of(turn) == nil {
			s.WithdrawTurn(context.Background(), turn)
		}
	})
}
