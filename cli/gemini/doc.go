// Package gemini is Google's Gemini CLI: live by the Agent Client Protocol, which package acp speaks, and one-shot
// by its stream of JSON events. It says what is Gemini's own: command lines, settings, log-in, models, failures.
//
// It is not the protocol, and holds no state of any conversation.
package gemini
