// Package codex lets ductor use the Codex CLI of OpenAI. It has two modes.
//
// In live mode, it speaks JSON-RPC with the program `codex app-server`. Such a process contains threads; that is
// Codex's name for sessions. Conversations with the same environment and arguments share a process. The process starts
// with the first session and ends with the last. Text streams word by word. Codex can ask users, and users can
// interrupt a turn or add messages to it.
//
// Codex does not end the commands of an interrupted turn. ductor ends them, and spares the processes of other threads:
// a variable in the environment of each thread's tools identifies the processes of the thread.
//
// In one-shot mode, each turn is a process of `codex exec --json`. The next process resumes the thread by its ID. This
// mode streams no text and asks no user; an action that the sandbox rejects is a Denial. ductor uses this mode if the
// installed version is too old for the app server, or if the app server does not work.
package codex
