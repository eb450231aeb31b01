// Package sessions is the screen of /sessions. It lists and finds the sessions of a chat, opens, renames, pins,
// archives, forks, exports and deletes them, and moves them from and to a terminal. It returns texts and handles
// buttons, but sends no messages.
package sessions
