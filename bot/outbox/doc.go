// Package outbox makes the calls that show something in a chat: in the right order, within budgets that learn from
// Telegram's answers, and again where that is safe.
//
// Telegram does not publish its limits, and they change. So each chat starts with a generous budget. A refusal (429)
// says how long to wait; the budget then shrinks, and grows back slowly while no refusal comes. What was learned
// outlives a restart in a Store.
//
// The package knows nothing of Telegram's methods: a Call brings a function that makes the request.
package outbox
