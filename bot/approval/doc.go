// Package approval is the screen on which users decide about approvals and answer agents' questions. Each has a
// message, which changes as users press its buttons or reply to it. The package neither determines who may decide nor
// carries out a decision.
package approval
