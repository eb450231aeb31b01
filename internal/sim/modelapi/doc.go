// Package modelapi simulates the HTTP APIs of model vendors on loopback: Anthropic Messages, OpenAI Responses and
// Chat Completions, and Gemini's. Tests use it to run the real agent CLIs without an account. Directives in the
// prompt control the model (package script). The position in a script follows from the conversation in the request,
// so a script continues after a tool's result and in a resumed session.
//
// The server rejects invalid requests and records all requests. It does not depend on the CLIs, except for the names
// of their tools.
package modelapi
