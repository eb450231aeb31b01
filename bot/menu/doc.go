// Package menu implements commands such as /model, /permissions, /role and /queue that let users choose with buttons. A
// menu is a message that changes with each press until the user has chosen. The package does not send messages itself,
// and leaves the effect of a choice to its Service.
package menu
