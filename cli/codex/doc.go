// Package codex implements the Codex CLI agent, in two modes.
//
// In live mode it speaks JSON-RPC with `codex app-server`. One process serves the threads of all conversations with the
// same environment and arguments. A server is such a process, and a live is one thread in it. The process starts with
// the first session and ends with the last. Text streams word by word, Codex can ask users, and a turn can be steered
// and interrupted.
//
// An interrupted turn leaves its commands running. ductor ends them without touching the processes of other threads: a
// marker in the environment of a thread's tools identifies its processes.
//
// In one-shot mode each turn is a process of `codex exec --json`. A session is a thread id, which the next process
// resumes. This mode streams no partial text and asks for no approval; an action that its sandbox rejects is a Denial.
// ductor uses it if the installed version is too old for the app server, or if the app server does not work.
package codex
