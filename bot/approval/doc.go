// Package approval shows agents' requests for approval and their questions in a chat. Each request or question has a
// message with buttons. The message changes when users press a button or reply. The package passes the users' decisions
// to its Service. The Service decides who may make them, and carries them out.
package approval
