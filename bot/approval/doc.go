// Package approval shows agents' requests for approval and their questions in a chat. Each request or question has a
// message with buttons. The message changes when users press a button or reply. The package passes the users' decisions
// to its Service. The Service checks who may make a decision, and carries it out.
package approval
