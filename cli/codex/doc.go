// Package codex is the Codex CLI dialect: `codex exec --json` for turns, `codex app-server` for the list of
// models and the question whether Codex is logged in.
//
// It is one-shot: each turn is a process, and a session is a thread id that the next process resumes.
// Codex exec prints no partial text and asks for no approval; what its sandbox refuses is a Denial.
package codex
