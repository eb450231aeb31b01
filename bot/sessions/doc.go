// Package sessions is the screen of /sessions: it lists and finds the sessions of a chat, and opens, renames, pins, archives, forks,
// exports and deletes them, and moves them from and to a terminal. It decides what messages say and does what their buttons say; it sends no message.
package sessions
