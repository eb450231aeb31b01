// Package hook contains the program that the agent CLIs in a user's terminals run as their hook. The program passes
// events of the CLIs to the running ductor and returns ductor's answers. The package implements both ends of the
// connection between hook and ductor.
//
// The package makes no decisions. If ductor does not answer, the hook prints nothing, and the CLI asks its question in
// the terminal as usual. The package has few imports, so that a hook starts quickly.
package hook
