// Package modelapi is the model vendors' HTTP APIs on loopback: Anthropic Messages, OpenAI Responses and Chat Completions, and Gemini's,
// so that the real agent CLIs can be driven without an account. What the model says is scripted by the
// directives in the prompt (package script); where a script stands is read from the conversation in the
// request, so that a script goes on after a tool result and in a resumed session.
//
// It is strict about what a request must have, and records every request. It is not a model, and it
// knows nothing of the CLIs but the names of the tools they offer.
package modelapi
