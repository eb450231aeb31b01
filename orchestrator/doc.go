// Package orchestrator is the domain: conversations, their queues and turns, sessions that outlive
// processes and agents, model choice, reset rules, roles, and what agents ask people.
//
// It is not Telegram (package bot shows what happens here), not an agent (package cli runs the turns) and
// not SQLite (internal/store keeps what is said here). It states what it needs of them in ports.go.
package orchestrator
