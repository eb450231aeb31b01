// Package menu implements commands such as /model, /permissions, /role and /queue that let users choose with buttons. A
// menu is a message that changes with each press until the user has chosen. The package sends no messages, and calls
// its Service to apply a choice.
package menu
