// Package side asks an agent a question outside of conversations, in a separate session and without rights: the agent
// may only read. It also lets an agent work on a task there, with the rights that the caller passes.
//
// The package stores nothing and shows nothing. It serves orchestrator/consult, which stores questions and answers as
// entries of sessions, and orchestrator/handoff, which lets an agent summarize history.
package side
