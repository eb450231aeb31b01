// Package setup asks the owner (the user who sets up ductor) for the required settings, identifies the owner's Telegram
// account by a message to the bot, and writes the configuration.
package setup
