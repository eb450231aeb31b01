// Package side asks an agent a question beside conversations, in a separate session and without rights: the agent may
// only read. It also lets an agent work on a task there, with the rights that the caller passes.
//
// The package stores nothing and shows nothing. orchestrator/consult stores entries of sessions, and
// orchestrator/handoff lets an agent summarize history.
package side
