// Package orchestrator defines the types of the domain, such as Conversation, Session, Turn, Outcome, Approval, Rule
// and Job. It also defines the interfaces between its engines and adapters, such as Store, Chat, Gateway and Journal.
//
// Package orchestrator/conversation runs turns, and orchestrator/approval decides requests of agents.
package orchestrator
