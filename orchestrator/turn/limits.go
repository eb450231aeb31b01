package turn

import "ductor/cli"

// loadLimits passes the stored limits of the agent's account to the Fanout.
func (a *attempt) loadLimits() {
	all, err := a.runner.opts.Store.PlanLimits(a.record)
	if err != nil {
		a.log().Warn("load plan limits", "err", err)
	}
	a.Events.Show(cli.LimitsReported{AccountLimits: cli.LimitsOf(all, a.turn.Agent, a.req.Account)})
}

// mergeLimits stores limits that the agent reported, and returns all stored limits of the account.
func (a *attempt) mergeLimits(ev cli.LimitsReported) cli.LimitsReported {
	ev.Agent, ev.Account = a.turn.Agent, a.req.Account
	known, err := a.runner.opts.Store.MergeLimits(a.record, ev.AccountLimits, a.runner.opts.Now())
	if err != nil {
		a.log().Warn("store plan limits", "err", err)
		known = a.Events.Limits()
	}
	return cli.LimitsReported{AccountLimits: known}
}

// Limits returns the last reported limits of the agent's account.
func (f *Fanout) Limits() cli.AccountLimits {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress.limits
}
