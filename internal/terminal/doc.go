// Package terminal has the agent CLIs of a user's terminals tell ductor what they do: it writes hooks into their settings, and
// takes them out again.
//
// The package does NOT run hooks, and knows neither sessions nor chats.
package terminal
