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

// Helper is another agent that works for a running turn. Tools limits the helper's tools, in the helper's names for
// them. A zero Helper means that the turn's own agent makes the request.
type Helper struct {
	Agent cli.Agent
	Tools cli.ToolList
}

// AskFor asks users to decide a request of one of ductor's tools, or to answer a question. The tool works on behalf of
// the turn's agent or of a helper. For a helper, the helper's own rules and tool lists apply. The event is a
// cli.ApprovalAsked or a cli.QuestionAsked; AskFor sets its ID.
//
// AskFor waits until a user decides or the deadline passes. If ctx is done, AskFor withdraws the request. It returns
// ErrNoTurn if the turn is not running.
func (s *Service) AskFor(ctx context.Context, turn cli.TurnID, h Helper, asked cli.Event) (cli.Decision, error) {
	r := s.of(turn)
	if r == nil {
		return cli.Decision{}, orchestrator.ErrNoTurn
	}
	return r.ask(ctx, cli.ApprovalID("tool-"+random(5)), h, asked)
}

// ask implements AskFor. The caller chooses the ID of the request.
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
	// Withdraw the request. But if ductor detaches from the turn for a restart, leave the request open, because the
	// next process repeats it.
	if !errors.Is(context.Cause(ctx), cli.ErrDetached) {
		r.handleOwn(cli.ApprovalWithdrawn{ID: id}, cli.ApprovalWithdrawn{ID: id})
	}
	if r.life.Err() != nil {
		return cli.Decision{}, context.Cause(r.life)
	}
	return cli.Decision{}, context.Cause(ctx)
}

// expect registers a request that ductor makes on behalf of an agent. The returned channel will receive the decision. A
// caller that stops waiting must call giveUp.
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

type ownRequest struct {
	decided chan<- cli.Decision
	of      Helper
}

func (r *Requests) giveUp(id cli.ApprovalID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, id)
}

// handleOwn handles a request that ductor makes on behalf of an agent. redacted is the same request without secrets,
// which users see. handleOwn returns false if the turn has already ended.
func (r *Requests) handleOwn(ev, redacted cli.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil || r.life.Err() != nil {
		return false
	}
	r.turn.Show(redacted)
	r.handleLocked(ev)
	return true
}

// AskForTerminal asks a user to decide a request of an agent that ductor does not run, for example an agent in the
// user's terminal. The caller describes the agent by a RunningTurn, as if ductor ran it. No rule allows the request,
// and the decision creates no rule.
//
// AskForTerminal waits until a user decides or the deadline passes. If ctx is done, AskForTerminal withdraws the
// request. But if the cause of ctx is cli.ErrDetached, ductor restarts, and the request stays open. After the restart,
// the agent must repeat the request with the same turn ID. It then gets the decision if a user has made one.
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
	if ctx.Err() != nil { // the deadline passed while ductor was not running
		return cli.Decision{}, context.Cause(ctx)
	}
	r := s.Open(life, of)
	defer r.Close()
	defer r.Drain()
	d, err := r.ask(ctx, "terminal", Helper{}, asked)
	if d.Reason == goneSentence { // the agent did not repeat the request in time, so ductor withdrew it
		return cli.Decision{}, orchestrator.ErrApprovalWithdrawn
	}
	return d, err
}

// askAgainWait is how long an agent in a terminal may take to repeat its open request after a start of ductor.
const askAgainWait = time.Minute

// awaitTerminal withdraws the request of an agent in a terminal, unless the agent repeats the request within
// askAgainWait.
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
