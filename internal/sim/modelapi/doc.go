// Package modelapi simulates the HTTP APIs of model vendors on the loopback interface: Anthropic's Messages, OpenAI's
// Responses and Chat Completions, and Gemini's. With it, tests run the real agent CLIs without an account. Directives
// in the prompt control the model (see package script). The server keeps no state for a script: it finds out from the
// messages in a request how far the script has run. So a script continues after the result of a tool, and in a resumed
// session.
//
// The server rejects invalid requests and records all requests. The only thing that it knows about the CLIs are the
// names of their tools.
package modelapi
