// Package approval is the screen on which users decide about approvals and answer agents' questions. Each approval has
// a message, which changes as users press its buttons or reply to it. The package does not determine who may decide,
// and does not carry out decisions.
package approval
