// Package approval is the screen on which users decide about approvals and answer questions of agents: a message for each,
// which changes as the user presses its buttons or replies to it. It says neither who may decide nor what a decision does.
package approval
