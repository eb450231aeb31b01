// Package judge finds out whether ductor kept its promises in a scenario. It examines ductor only from outside: the
// chats, the agents' logs, files, and leftovers on the machine. It does not depend on ductor's implementation. It
// consists of rules, each of which returns violations. The rules allow exactly as much as docs/invariants.md.
package judge
