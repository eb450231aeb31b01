// Package updates takes what comes in from Telegram: it polls, checks the allowlist, stores updates before it acknowledges
// them, routes commands, presses and prompts, keeps the order within a conversation, merges albums and split pastes, and
// fetches files.
//
// It does not say what a command or a button does: that is its Handler, which package bot makes. It sends nothing but
// reactions and the sentences that answer what it cannot pass on.
package updates
