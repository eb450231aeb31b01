// Package outbox makes requests to Telegram. It makes them in the right order, observes Telegram's rate limits, and
// retries failed requests if a retry is safe.
//
// Telegram does not publish its rate limits, and changes them at times. Therefore, each chat starts with a generous
// budget: an estimate of how many requests Telegram allows. If Telegram responds with a rate limit error (429), the
// outbox waits for the time in this error and reduces the budget. The budget grows again slowly while no further error
// occurs. A Store stores the budgets, so that they survive restarts.
//
// The package does not know Telegram's methods: a Call contains the function that makes the request.
package outbox
