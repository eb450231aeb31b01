// Package codex implements the Codex CLI agent, in two modes.
//
// In live mode it speaks JSON-RPC with `codex app-server`. One process serves the threads of all conversations with the
// same environment and arguments; a server is such a process, a live is one thread in it. The process starts with the
// first session and ends with the last. Text streams word by word, Codex can ask users, and a turn can be steered and
// interrupted. An interrupted turn leaves its commands running. A marker in the environment of the thread's tools
// identifies their processes, so that ductor can end them without touching other threads' processes.
//
// In one-shot mode each turn is a process of `codex exec --json`, and a session is a thread id that the next process
// resumes. It streams no partial text and asks for no approval; an action that its sandbox rejects is a Denial. ductor
// uses it if the installed version is too old for the app server, or if the app server does not work.
package codex
