// Package updates receives messages and button presses ("updates") from Telegram and routes them. It polls the Bot API,
// checks that the sender may use the bot, and stores each update before it acknowledges it. It handles the updates of a
// conversation in order. Several messages that belong to one prompt, such as the files of an album, are merged, and
// their files are downloaded.
//
// Package bot implements the commands and buttons as a Handler. Package updates itself only sends reactions, and
// answers to messages that it cannot use.
package updates
