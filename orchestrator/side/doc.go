// Package side asks an agent one question beside conversations, in a session of its own and without rights: the agent reads, and
// changes nothing. It also has an agent do a task there, with the rights that its caller gives.
//
// The package stores nothing and shows nothing. orchestrator/consult keeps side sessions, and orchestrator/handoff has history
// summarized in them.
package side
