// Package hook contains the program that the agent CLIs in a user's terminals run as their hook. It passes their events
// to the running ductor and returns ductor's answers. It implements both ends of that connection.
//
// The package makes no decisions. If ductor does not answer, the hook prints nothing, and the CLI asks its question in
// the terminal as usual. The package has few imports, so that a hook starts quickly.
package hook
