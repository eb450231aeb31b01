// Package gemini implements the Gemini CLI agent of Google: live through the Agent Client Protocol, which package acp
// implements, and one-shot through its stream of JSON events. It contains everything that is specific to Gemini:
// command lines, settings, log-in, models, failures.
//
// It does not implement the protocol, and holds no state of conversations.
package gemini
