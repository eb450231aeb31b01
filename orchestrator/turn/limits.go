package turn

import "ductor/cli"

// loadLimits passes on the known limits of the agent's account.
func (a *attempt) loadLimits() {
	all, err := a.runner.opts.Store.PlanLimits(a.record)
	if err != nil {
		a.log().Warn("load plan limits", "err", err)
	}
	a.Events.Show(cli.LimitsReported{AccountLimits: cli.LimitsOf(all, a.turn.Agent, a.req.Account)})
}

// mergeLimits stores limits that the agent reported. It returns all known limits of the account.
func (a *attempt) mergeLimits(ev cli.LimitsReported) cli.LimitsReported {
	ev.Agent, ev.Account = a.turn.Agent, a.req.Account
	known, err := a.runner.opts.Store.MergeLimits(a.record, ev.AccountLimits, a.runner.opts.Now())
	if err != nil {
		a.log().Warn("store plan limits", "err", err)
		known = a.Events.Limits()
	}
	return cli.LimitsReported{AccountLimits: known}
}

// Limits returns the limits of the agent's account, as far as they are known.
func (f *Fanout) Limits() cli.AccountLimits {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress.limits
}
