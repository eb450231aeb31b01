// Package side asks an agent one question beside conversations, in a session of its own and without rights: the agent reads, and
// changes nothing.
//
// The package stores nothing and shows nothing. orchestrator/consult keeps side sessions, and orchestrator/handoff has history
// summarized in them.
package side
