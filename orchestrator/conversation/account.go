package conversation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

const accountsWait = 2 * time.Second

// Accounts implements menu.Service.
func (e *Engine) Accounts(ctx context.Context, id orchestrator.ConversationID) (orchestrator.AccountChoice, error) {
	conv, _, in, err := e.next(ctx, id)
	if err != nil {
		return orchestrator.AccountChoice{}, err
	}
	who, err := e.chooseAgent(cli.AtOnce(ctx), conv, in)
	if err != nil {
		return orchestrator.AccountChoice{}, err
	}
	limits, err := e.opts.Store.PlanLimits(ctx)
	if err != nil {
		return orchestrator.AccountChoice{}, err
	}
	asking, cancel := context.WithTimeout(ctx, accountsWait)
	defer cancel()
	return orchestrator.AccountChoice{Agent: who.Agent, Account: who.Account, Limits: limits,
		All: e.opts.Gateway.Accounts(asking, in, who.Agent)}, nil
}

// SetAccount implements menu.Service.
func (e *Engine) SetAccount(ctx context.Context, id orchestrator.ConversationID, agent cli.Agent,
	account cli.Account) error {
	if !e.hasAccount(ctx, agent, account) {
		return orchestrator.ErrBadChoice
	}
	return e.changeAndWarm(ctx, id, func(c *orchestrator.Conversation) {
		c.Settings.Accounts = c.Settings.Accounts.With(agent, account)
	})
}

func (e *Engine) hasAccount(ctx context.Context, agent cli.Agent, account cli.Account) bool {
	return account == "" || contains(e.opts.Gateway.Accounts(cli.AtOnce(ctx), "", agent), account)
}

func contains(all []cli.MenuEntry, account cli.Account) bool {
	return slices.ContainsFunc(all, func(entry cli.MenuEntry) bool { return entry.Account == account })
}

// useAccount sets the account of a turn to the account that a user chose in the conversation. If the configuration no
// longer contains that account, the turn uses the default account. useAccount then also resets the user's choice and
// notifies the chat.
func (e *Engine) useAccount(ctx context.Context, conv orchestrator.Conversation, t *orchestrator.Turn) {
	t.Entry.Account = conv.Settings.Accounts[t.Agent]
	if t.Entry.Account == "" {
		return
	}
	// If the agent is no longer configured, it has no accounts. Then do nothing: the turn will fail and report the
	// missing agent.
	all := e.opts.Gateway.Accounts(cli.AtOnce(ctx), "", t.Agent)
	if len(all) == 0 || contains(all, t.Entry.Account) {
		return
	}
	gone := t.Entry.Account
	t.Entry.Account = ""
	err := e.opts.Chat.Notice(ctx, conv.ID,
		e.opts.Lang.Of(conv.ID.Chat).Text("turn.account-gone", t.Agent.Name(), string(gone)))
	if err == nil {
		err = e.change(ctx, conv.ID, func(c *orchestrator.Conversation) {
			c.Settings.Accounts = c.Settings.Accounts.With(t.Agent, "")
		})
	}
	if err != nil {
		e.log.Error("notify a chat that an account is no longer configured", "chat", conv.ID.Chat, "err", err)
	}
}

// continueAs changes the account of an agent in the conversation, and runs the prompt of a turn again with that
// account. If continueAs returns an error, it has not changed the account.
func (e *Engine) continueAs(ctx context.Context, t orchestrator.Turn, account cli.Account,
	by orchestrator.Press) (receipt orchestrator.Receipt, err error) {
	if t.Agent == "" || account == t.Entry.Account || !e.hasAccount(ctx, t.Agent, account) {
		return receipt, orchestrator.ErrBadChoice
	}
	return e.repeatAfter(ctx, t, orchestrator.ActionAccount(account), by)
}

// switchAccount stops a running turn, and runs its prompt again with another account, like continueAs.
func (e *Engine) switchAccount(ctx context.Context, id cli.TurnID, account cli.Account,
	by orchestrator.Press) (receipt orchestrator.Receipt, err error) {
	_, r, err := e.replaceable(id, by)
	if err != nil {
		return receipt, err
	}
	// Queue the copy of the turn first, so that the prompt is not lost once the turn is stopped. Do not mark the press
	// as handled yet: if ductor crashes before StopTurn, the next process handles the press again and stops the turn.
	queuing := by
	queuing.Updates = nil
	again := r.turn
	again.Wants = again.Wants.Shown()
	receipt, err = e.continueAs(ctx, again, account, queuing)
	if receipt.Full || err != nil && !errors.Is(err, orchestrator.ErrRepeated) {
		return receipt, err
	}
	receipt.Turn = id // ductor changes the buttons on the card of this turn when the turn has ended
	// ErrNoTurn means that the turn has just ended without an abort.
	if _, stop := e.stopTurn(ctx, id, by, &runsAgain{by: by}); !errors.Is(stop, orchestrator.ErrNoTurn) {
		err = cmp.Or(stop, err)
	}
	return receipt, err
}
