// Package orchestrator defines the nouns of the domain, such as Conversation, Session, Turn, Outcome, Approval, Rule
// and Job, and the ports between its engines and adapters: Store, Chat, Gateway, Journal.
//
// It is not an engine itself: orchestrator/conversation runs turns, and orchestrator/approval decides requests of
// agents.
package orchestrator
