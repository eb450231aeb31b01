// Package judge says what went wrong in a run of a scenario, from outside alone: it looks at what Telegram shows, at what agents
// logged, at files and at what is left on the machine, and knows nothing of how ductor works. It is a list of rules; each takes the
// evidence and returns what violates it. What docs/invariants.md allows, the rules allow, and no more.
package judge
