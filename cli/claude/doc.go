// Package claude speaks Claude Code: its command line, its stream-json protocol in and out, its control
// requests, its log-in and its models.
//
// It translates one turn into cli events and nothing more: which conversation runs when, what is
// repeated after a failure and where processes start are decided above it. It is not a general agent
// runner, and it knows nothing of chats.
package claude
