// Package setup asks the owner for the required settings, identifies the owner by a message to the bot, and writes
// the configuration.
package setup
