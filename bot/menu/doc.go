// Package menu shows the screens of /model, /permissions, /role and /queue: messages with buttons that change until
// the user has chosen. The package does not send messages and does not know the effect of a choice.
package menu
