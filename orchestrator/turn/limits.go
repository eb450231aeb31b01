package turn

import (
	"context"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

func (a *attempt) loadLimits() {
	all, err := a.runner.opts.Store.PlanLimits(a.record)
	if err != nil {
		a.log().Warn("load plan limits", "err", err)
	}
	a.Events.Show(a.withOthers(cli.LimitsOf(all, a.turn.Agent, a.turn.Entry.Account)))
}

// mergeLimits stores limits that the agent reported, and returns all stored limits of the account.
func (a *attempt) mergeLimits(ev cli.LimitsReported) cli.LimitsReported {
	ev.Agent, ev.Account = a.turn.Agent, a.turn.Entry.Account
	known, err := a.runner.opts.Store.MergeLimits(a.record, ev.AccountLimits, a.runner.opts.Now())
	if err != nil {
		a.log().Warn("store plan limits", "err", err)
		known = a.Events.Limits()
	}
	return a.withOthers(known)
}

// withOthers converts limits to an event. If a limit is almost reached, the event contains other accounts to which the
// user can switch.
func (a *attempt) withOthers(known cli.AccountLimits) cli.LimitsReported {
	ev := cli.LimitsReported{AccountLimits: known}
	if len(known.Near(a.runner.opts.Now()).Limits) > 0 {
		ev.Others = a.otherAccounts(cli.AtOnce(a.record))
	}
	return ev
}

// mostOthers limits how many other accounts ductor offers below an answer.
const mostOthers = 2

// otherAccounts returns at most mostOthers other accounts of the agent that are logged in and not at a limit.
func (t *Turn) otherAccounts(ctx context.Context) (others []cli.Account) {
	o, now := &t.runner.opts, t.runner.opts.Now()
	all := o.Gateway.Accounts(ctx, t.turn.Sandbox, t.turn.Agent)
	if len(all) < 2 {
		return nil
	}
	limits, err := o.Store.PlanLimits(t.record)
	if err != nil {
		t.log().Warn("load plan limits", "err", err)
	}
	for _, e := range all {
		resting := o.Breakers.Open(t.turn.Sandbox, t.turn.Agent, e.Account)
		if e.Account != t.turn.Entry.Account && e.Err == nil && e.Auth.State == cli.Authenticated &&
			(resting == nil || resting.Kind != cli.LimitReached) && len(others) < mostOthers &&
			!cli.LimitsOf(limits, t.turn.Agent, e.Account).Reached(now) {
			others = append(others, e.Account)
		}
	}
	return others
}

const loginWait = 5 * time.Second

// accountActions returns one action for each other account with which the prompt could run after a limit was reached.
func (t *Turn) accountActions(f *cli.Failure) (actions []orchestrator.Action) {
	if f.Agent != t.turn.Agent {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.record, loginWait)
	defer cancel()
	for _, account := range t.otherAccounts(ctx) {
		actions = append(actions, orchestrator.ActionAccount(account))
	}
	return actions
}

// accountOf returns the account of the turn, if the given agent is the turn's agent. Otherwise it returns "".
func (t *Turn) accountOf(agent cli.Agent) cli.Account {
	if agent != t.turn.Agent {
		return ""
	}
	return t.turn.Entry.Account
}

// Limits returns the usage limits that the agent last reported for its account.
func (f *Fanout) Limits() cli.AccountLimits {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress.limits
}
