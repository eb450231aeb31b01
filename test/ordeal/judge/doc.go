// Package judge finds out whether ductor kept its promises in a scenario. It looks only at what is visible from
// outside: the chats, the agents' logs, files, and what is left on the machine. It does not depend on ductor's
// implementation. It consists of rules, each of which returns violations. The rules allow exactly what
// docs/invariants.md allows.
package judge
