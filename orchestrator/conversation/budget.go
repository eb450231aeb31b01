package conversation

import (
	"context"

	"ductor/orchestrator"
	"ductor/orchestrator/spending"
)

// withinBudget returns how many US dollars a turn may cost. 0 means no limit. If a budget is used up, it returns a
// *cli.Failure.
func (e *Engine) withinBudget(ctx context.Context, t orchestrator.Turn) (float64, error) {
	return e.opts.Budgets.Left(ctx, e.opts.Lang.Of(t.Prompt.Conversation.Chat), spending.SpenderOf(t))
}

// liftBudgets removes all budgets for today at the request of an owner, and runs the prompt of a turn again.
func (e *Engine) liftBudgets(ctx context.Context, t orchestrator.Turn, by orchestrator.Press) (orchestrator.Receipt,
	error) {
	if e.opts.Budgets == nil {
		return orchestrator.Receipt{}, orchestrator.ErrBadChoice
	}
	if !by.May(orchestrator.LiftBudgets) {
		return orchestrator.Receipt{}, orchestrator.ErrNotOwner
	}
	if err := e.opts.Budgets.Lift(ctx, by.Person); err != nil {
		return orchestrator.Receipt{}, err
	}
	return e.repeat(ctx, t, by)
}

// warnOfBudgets warns a chat when most of a budget is used up, once in each period of the budget.
func (e *Engine) warnOfBudgets(ctx context.Context, t orchestrator.Turn) {
	p := e.opts.Lang.Of(t.Prompt.Conversation.Chat)
	for _, text := range e.opts.Budgets.Warnings(ctx, p, spending.SpenderOf(t)) {
		if err := e.opts.Chat.Notice(ctx, t.Prompt.Conversation, text); err != nil {
			e.log.Error("warn of a budget", "chat", t.Prompt.Conversation.Chat, "err", err)
		}
	}
}
