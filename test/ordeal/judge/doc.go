// Package judge finds violations in a run of a scenario. It sees the run only from outside: Telegram's view, agents'
// logs, files, and leftovers on the machine. It does not depend on ductor's implementation. It is a list of rules, each
// of which returns the violations in the evidence. The rules allow exactly as much as docs/invariants.md.
package judge
