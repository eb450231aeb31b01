// Package side asks an agent a question in a separate session, outside of conversations. The agent may only read. The
// package can also give an agent a task. For a task, the caller determines the agent's permissions.
//
// The package stores nothing and shows nothing. orchestrator/consult asks questions with it, and stores them as entries
// of sessions. orchestrator/handoff lets agents summarize history with it.
package side
