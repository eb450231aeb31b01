-- The plan limits of agents, by account. The list is JSON; see cli.PlanLimit.
CREATE TABLE plan_limits (
	agent TEXT NOT NULL,
	account TEXT NOT NULL,
	limits TEXT NOT NULL,
	PRIMARY KEY (agent, account)
) STRICT, WITHOUT ROWID;
