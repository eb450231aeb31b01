// Package gemini implements Google's Gemini CLI agent. Live sessions use the Agent Client Protocol, which package
// cli/acp implements. One-shot turns use Gemini's stream of JSON events. The package contains everything that is
// specific to Gemini: command lines, settings, log-in, models and failures. It stores no state of conversations.
package gemini
