// Package updates handles updates from Telegram. It polls, checks the allowlist, stores updates before it acknowledges
// them, routes commands, presses and prompts, preserves the order within a conversation, merges albums and split
// pastes, and fetches files.
//
// Package bot implements the effect of commands and buttons as a Handler. This package sends only reactions, and
// sentences for input that it cannot pass on.
package updates
