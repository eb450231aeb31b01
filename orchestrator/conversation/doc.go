// Package conversation runs conversations: their queues, turns and sessions, with history, steering, delivery and recovery.
//
// It is not Telegram (package bot shows what happens here), not an agent (package cli runs the turns) and not SQLite
// (internal/store keeps what happens here). What it needs of them is stated in package orchestrator.
package conversation
