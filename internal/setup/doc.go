// Package setup asks an owner what ductor needs to know, learns who the owner is from a message to the bot, and writes
// the configuration.
package setup
