// Package codex is the Codex CLI dialect, in two modes.
//
// Live it speaks JSON-RPC with `codex app-server`. One process serves the threads of all conversations whose
// environment and arguments are the same; a server is such a process, a live is one thread in it. The process starts
// with the first session and ends with the last. Text comes word by word, Codex asks people, a turn can be steered
// and interrupted. An interrupted turn leaves its commands running: what they started is found by a marker in the
// environment of the thread's tools, and ended, without touching what runs for others.
//
// One-shot each turn is a process of `codex exec --json`, and a session is a thread id that the next process
// resumes. It prints no partial text and asks for no approval; what its sandbox refuses is a Denial. It is what
// runs where the installed version is too old for the app server, or the app server breaks.
package codex
