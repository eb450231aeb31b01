// Package outbox makes the calls that show something in a chat. It makes them in the right order, within budgets that
// it learns from Telegram's answers, and retries them if that is safe.
//
// Telegram does not publish its limits, and changes them. So each chat starts with a generous budget. A rate limit
// error (429) contains the time to wait. The budget then shrinks, and grows back slowly if no further error comes. A
// Store preserves the budgets over restarts.
//
// The package does not know the methods of Telegram: a Call contains a function that makes the request.
package outbox
