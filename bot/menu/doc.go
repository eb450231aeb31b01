// Package menu shows the screens of /model, /permissions, /role and /queue: messages with buttons that change until the
// user has chosen. It sends no messages itself and does not know the effect of a choice.
package menu
