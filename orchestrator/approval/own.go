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

// Ask has users decide what a tool of ductor wants to do for the agent of a running turn, or answer what it asks. It waits for the
// decision, for its expiry or for the end of ctx, which withdraws the request. asked is a cli.ApprovalAsked or a cli.QuestionAsked;
// its id is chosen here. ErrNoTurn if the turn does not run.
func (s *Service) Ask(ctx context.Context, turn cli.TurnID, asked cli.Event) (cli.Decision, error) {
	return s.AskFor(ctx, turn, Helper{}, asked)
}

// Helper is another agent that works for a running turn, and the tools it may use, in its own words. The zero value is the agent
// of the turn.
type Helper struct {
	Agent cli.Agent
	Tools cli.ToolList
}

// AskFor is Ask for what a helper of the turn asks: the rules that count are those for the helper's agent, and its lists of tools hold.
func (s *Service) AskFor(ctx context.Context, turn cli.TurnID, h Helper, asked cli.Event) (cli.Decision, error) {
	r := s.of(turn)
	if r == nil {
		return cli.Decision{}, orchestrator.ErrNoTurn
	}
	return r.ask(ctx, cli.ApprovalID("tool-"+random(5)), h, asked)
}

// ask is AskFor under an id of its caller.
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
	shown, _ := secrets.Clean(r.turn.Secrets.Known(), asked)
	if !r.takeOwn(asked, shown) {
		return cli.Decision{}, orchestrator.ErrNoTurn
	}
	select {
	case d := <-decided:
		return d, nil
	case <-ctx.Done():
	case <-r.life.Done():
	}
	if !errors.Is(context.Cause(ctx), cli.ErrDetached) { // else it is asked again
		r.takeOwn(cli.ApprovalWithdrawn{ID: id}, cli.ApprovalWithdrawn{ID: id})
	}
	if r.life.Err() != nil {
		return cli.Decision{}, context.Cause(r.life)
	}
	return cli.Decision{}, context.Cause(ctx)
}

// expect returns the channel for the decision about something that ductor asks in the agent's place. The caller calls giveUp.
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

// ownRequest is something that ductor asks in an agent's place.
type ownRequest struct {
	decided chan<- cli.Decision
	of      Helper
}

func (r *Requests) giveUp(id cli.ApprovalID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, id)
}

// takeOwn shows and handles an event of ductor's own; false once the agent has ended the turn.
func (r *Requests) takeOwn(ev, shown cli.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.own == nil || r.life.Err() != nil {
		return false
	}
	r.turn.Show(shown)
	r.handleLocked(ev)
	return true
}

// AskOutside has a user decide what an agent asks that ductor does not run, such as one in a terminal. of names it. No rule
// decides, and none is made. It waits for the decision, for its expiry or for the end of ctx, which withdraws the request. If the cause of
// that is cli.ErrDetached, the request stays open: the next process is asked the same under the same id of the turn, and gets
// what was decided meanwhile.
func (s *Service) AskOutside(ctx context.Context, of Running, asked cli.Event) (cli.Decision, error) {
	of.Turn.ID = orchestrator.TerminalTurn + cmp.Or(of.Turn.ID, cli.TurnID(s.opts.NewID()))
	of.Turn.Prompt.Rights = orchestrator.Rights{Of: orchestrator.RightsOfTerminal}
	of.Show = func(cli.Event) {}
	life := context.WithoutCancel(ctx)
	defer func() {
		if !errors.Is(context.Cause(ctx), cli.ErrDetached) {
			s.WithdrawTurn(life, of.Turn.ID)
		}
	}()
	if ctx.Err() != nil { // its time passed while no ductor was there
		return cli.Decision{}, context.Cause(ctx)
	}
	r := s.Open(life, of)
	defer r.Close()
	defer r.Drain()
	d, err := r.ask(ctx, "terminal", Helper{}, asked)
	if d.Reason == goneSentence { // before it was asked again
		return cli.Decision{}, orchestrator.ErrApprovalWithdrawn
	}
	return d, err
}

// askAgainWait is how long after a start a request of a terminal stays open that is not asked again.
const askAgainWait = time.Minute

// awaitOutside withdraws the request of a terminal unless that asks again.
func (s *Service) awaitOutside(turn cli.TurnID) {
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
