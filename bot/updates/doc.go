// Package updates handles updates from Telegram. It polls, checks the allowlist, and stores updates before it
// acknowledges them. It routes commands, presses and prompts in the order of each conversation. It merges albums and
// split pastes, and fetches files.
//
// Package bot implements commands and buttons as a Handler. Package updates itself sends only reactions, and messages
// about input that it cannot use.
package updates
