package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// accountsWait limits the time for checking the log-ins of an agent's accounts for a user.
const accountsWait = 2 * time.Second

// Accounts implements menu.Service.
func (e *Engine) Accounts(ctx context.Context, id orchestrator.ConversationID) (orchestrator.AccountChoice, error) {
	conv, err := e.opts.Store.Conversation(ctx, id)
	if err != nil {
		return orchestrator.AccountChoice{}, fmt.Errorf("load conversation: %w", err)
	}
	_, in, err := e.nextPlace(ctx, conv)
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
	err := e.setAccount(ctx, id, agent, account)
	if err == nil {
		e.warm(ctx, id)
	}
	return err
}

func (e *Engine) setAccount(ctx context.Context, id orchestrator.ConversationID, agent cli.Agent,
	account cli.Account) error {
	return e.change(ctx, id, func(c *orchestrator.Conversation) {
		c.Settings.Accounts = c.Settings.Accounts.With(agent, account)
	})
}

// hasAccount reports whether the configuration has an account.
func (e *Engine) hasAccount(ctx context.Context, agent cli.Agent, account cli.Account) bool {
	return account == "" || contains(e.opts.Gateway.Accounts(cli.AtOnce(ctx), "", agent), account)
}

// contains reports whether a list of accounts has an account.
func contains(all []cli.MenuEntry, account cli.Account) bool {
	return slices.ContainsFunc(all, func(entry cli.MenuEntry) bool { return entry.Account == account })
}

// useAccount sets the account of a turn whose agent is known. If the configuration no longer has the account that the
// conversation chose, the turn uses the default one, the chat is notified, and the conversation forgets its choice.
func (e *Engine) useAccount(ctx context.Context, conv orchestrator.Conversation, t *orchestrator.Turn) {
	t.Entry.Account = conv.Settings.Accounts[t.Agent]
	if t.Entry.Account == "" {
		return
	}
	// The turn itself reports an agent that is no longer configured, which has no accounts at all.
	all := e.opts.Gateway.Accounts(cli.AtOnce(ctx), "", t.Agent)
	if len(all) == 0 || contains(all, t.Entry.Account) {
		return
	}
	gone := t.Entry.Account
	t.Entry.Account = ""
	err := e.opts.Chat.Notice(ctx, conv.ID,
		e.opts.Lang.Of(conv.ID.Chat).Text("turn.account-gone", t.Agent.Name(), string(gone)))
	if err == nil {
		err = e.setAccount(ctx, conv.ID, t.Agent, "")
	}
	if err != nil {
		e.log.Error("notify a chat that an account is no longer configured", "chat", conv.ID.Chat, "err", err)
	}
}

// continueAs sets the account of an agent in the conversation, and runs the prompt of a turn of that agent again. If it
// refuses, the conversation keeps its account.
func (e *Engine) continueAs(ctx context.Context, t orchestrator.Turn, account cli.Account,
	by orchestrator.Press) (receipt orchestrator.Receipt, err error) {
	if t.Agent == "" || account == t.Entry.Account || !e.hasAccount(ctx, t.Agent, account) {
		return receipt, orchestrator.ErrBadChoice
	}
	c, err := e.conversation(by.Conversation)
	if err != nil {
		return receipt, err
	}
	again := repetition(t, withoutJobWants(t.Wants), by)
	c.do(func() { // nothing starts before this function returns, so the new turn uses the account
		if err = e.unrepeated(ctx, t.ID, by.Conversation); err != nil {
			return
		}
		if receipt.Full = c.full(); receipt.Full {
			return
		}
		var before cli.Accounts
		if err = e.save(ctx, by.Conversation, func(c *orchestrator.Conversation) {
			before = c.Settings.Accounts
			c.Settings.Accounts = before.With(t.Agent, account)
		}); err != nil {
			return
		}
		// Only now: otherwise a crash in between would lose the account, because this commit marks the press as handled.
		if receipt, err = c.append(ctx, &again); err != nil {
			err = errors.Join(err, e.save(ctx, by.Conversation, func(c *orchestrator.Conversation) {
				c.Settings.Accounts = before
			}))
		}
	})
	if err == nil && receipt.Ahead > 0 && !receipt.Full {
		c.showQueued(again, receipt.Ahead)
	}
	return receipt, err
}

// switchAccount is continueAs for a running turn, which it stops.
func (e *Engine) switchAccount(ctx context.Context, id cli.TurnID, account cli.Account,
	by orchestrator.Press) (receipt orchestrator.Receipt, err error) {
	c, err := e.conversation(by.Conversation)
	if err != nil {
		return receipt, err
	}
	r := c.running.Load()
	switch {
	case !r.is(id) || r.req == nil || orchestrator.IsJobTurn(id):
		return receipt, orchestrator.ErrStillOpen
	case !by.MayEnd(r.turn) || by.Precedes(r.turn):
		return receipt, orchestrator.ErrNotAllowed
	}
	// Queue the copy first: without it, a stopped turn would have lost its prompt. The copy does not mark the press as
	// handled, so after a crash the same press finds the copy and still stops the turn.
	queuing := by
	queuing.Updates = nil
	receipt, err = e.continueAs(ctx, r.turn, account, queuing)
	if receipt.Full || err != nil && !errors.Is(err, orchestrator.ErrRepeated) {
		return receipt, err
	}
	receipt.Turn = id // the buttons of its card change when it has ended
	// After ErrNoTurn the turn has just ended by itself.
	if stop := e.StopTurn(ctx, id, by); !errors.Is(stop, orchestrator.ErrNoTurn) {
		err = cmp.Or(stop, err)
	}
	return receipt, err
}
