// Package updates handles updates from Telegram. It polls, checks the allowlist, and stores updates before it
// acknowledges them. It routes commands, presses and prompts, and preserves the order within a conversation. It merges
// albums and split pastes, and fetches files.
//
// Package bot implements the effect of commands and buttons as a Handler. Package updates itself sends only reactions,
// and sentences about input that it cannot pass on.
package updates
