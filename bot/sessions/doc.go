// Package sessions implements the command /sessions. Users list, find, open, rename, pin, archive, fork, export and
// delete the sessions of a chat, and continue sessions of a terminal. The package returns texts and handles buttons. It
// sends no messages.
package sessions
