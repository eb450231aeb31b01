// Package approval shows agents' requests for approval and their questions in a chat. Each has a message with buttons,
// which changes as users press them or reply to it. The package passes the users' decisions on to its Service, which
// decides who may make them and carries them out.
package approval
