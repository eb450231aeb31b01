// Package side asks an agent a question in a separate session, outside of conversations. The agent may only read. The
// package can also give an agent a task. Then the caller determines the agent's permissions.
//
// The package stores nothing and shows nothing. orchestrator/consult uses it to ask questions and stores them as
// entries of sessions. orchestrator/handoff uses it to let an agent summarize history.
package side
