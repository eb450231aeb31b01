// Package outbox makes requests to Telegram. It makes them in the right order, observes Telegram's rate limits, and
// retries requests if that is safe.
//
// Telegram does not publish its rate limits, and changes them at times. Therefore, each chat starts with a generous
// budget: an estimate of how many requests Telegram allows. If Telegram responds with a rate limit error (429), the
// outbox waits for the time in that error and reduces the budget, which grows again slowly while no further error
// occurs. A Store keeps the budgets over restarts.
//
// The package does not know Telegram's methods: a Call contains the function that makes the request.
package outbox
