// Package codex implements the Codex CLI agent, in two modes.
//
// In live mode it speaks JSON-RPC with `codex app-server`. Type server is such a process, and type live is one thread
// in a server. Conversations with the same environment and arguments share a server, which starts with the first
// session and ends with the last. Text streams word by word, Codex can ask users, and turns can be steered and
// interrupted.
//
// An interrupted turn leaves its commands running. ductor ends these commands without touching processes of other
// threads: a marker in the environment of each thread's tools identifies the thread's processes.
//
// In one-shot mode each turn is a process of `codex exec --json`. A session is a thread ID, which the next process
// resumes. This mode streams no partial text and asks for no approval; an action that the sandbox rejects is a Denial.
// ductor uses the mode if the installed version is too old for the app server, or if the app server does not work.
package codex
