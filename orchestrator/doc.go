// Package orchestrator is the nouns of the domain, such as Conversation, Session, Turn, Outcome, Approval, Rule and Job,
// and the ports that its engines and adapters meet at: Store, Chat, Gateway, Journal.
//
// It is no engine: orchestrator/conversation runs turns, orchestrator/approval decides what agents ask.
package orchestrator
