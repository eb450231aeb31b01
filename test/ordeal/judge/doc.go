// Package judge finds out whether ductor kept its promises in a scenario. It examines ductor only from outside: the
// chats, the agents' logs, files, and leftovers on the machine. It does not depend on ductor's implementation.
//
// The package consists of rules. Each rule checks one promise in docs/invariants.md and returns violations of the
// promise. Package scenario explains tokens, acts and effects.
package judge
