// Package side asks an agent a question in a separate session, outside of conversations. The agent has no rights except
// to read. The package can also let an agent work on a task, with the rights that the caller passes.
//
// The package stores nothing and shows nothing. orchestrator/consult uses it and stores questions and answers as
// entries of sessions. orchestrator/handoff uses it to let an agent summarize history.
package side
