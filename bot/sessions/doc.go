// Package sessions implements the command /sessions. It lists and finds the sessions of a chat. It opens, renames,
// pins, archives, forks, exports and deletes them, and it continues sessions of a terminal. It returns texts and
// handles buttons. It sends no messages.
package sessions
