// Package approval decides what agents ask: it says who may decide, when a request expires and which rules apply, and
// tells the agent.
//
// It is not what users see of a request (package bot shows it), and no queue or turn (orchestrator/conversation runs them).
package approval
