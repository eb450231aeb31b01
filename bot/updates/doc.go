// Package updates receives messages and button presses ("updates") from Telegram and routes them. The package polls the
// Bot API, checks that the sender may use the bot, and stores each update before it acknowledges the update. It handles
// the updates of a conversation in order. It merges messages that belong to one prompt, such as the files of an album,
// and downloads their files.
//
// Package bot implements the commands and buttons as a Handler. Package updates itself sends only reactions, and
// answers to messages that it cannot use.
package updates
