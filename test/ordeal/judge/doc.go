// Package judge finds violations in a run of a scenario, only from outside: from Telegram's view, agents' logs,
// files, and leftovers on the machine. It knows nothing of ductor's implementation. It is a list of rules, each of
// which returns violations in the evidence. The rules allow exactly as much as docs/invariants.md.
package judge
