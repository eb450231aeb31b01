// Package menu is the screens of /model, /permissions, /role and /queue: messages with buttons that change until the user
// has chosen. It sends no message, and knows nothing of what a choice does.
package menu
