// Package gemini lets ductor use Google's Gemini CLI. It has two modes. In live mode, Gemini speaks the Agent Client
// Protocol, which package cli/acp implements. In one-shot mode, each turn is a process that prints a stream of JSON
// events. This package contains what is specific to Gemini: command lines, settings, log-in, models and failures.
package gemini
