// Package modelapi simulates the HTTP APIs of model vendors on the loopback interface: Anthropic's Messages, OpenAI's
// Responses and Chat Completions, and Gemini's. With it, tests run the real agent CLIs without an account. Directives
// in the prompt control the model (see package script). The server stores no position in a script. To find the
// position, it counts the results of tools in each request. So a script continues after a tool call, even in a resumed
// session.
//
// The server rejects invalid requests and records all requests. It depends on the CLIs only for the names of their
// tools.
package modelapi
