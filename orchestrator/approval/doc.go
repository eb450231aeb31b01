// Package approval decides requests of agents. It determines who may decide, when a request expires and which rules
// apply, and passes the decision to the agent.
//
// Package bot shows the requests to users, and orchestrator/conversation runs the turns.
package approval
