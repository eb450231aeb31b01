// Package tgapi makes requests to Telegram's Bot API, classifies their errors, and removes secrets from everything that
// is sent. No other package imports a Telegram library. This package does not observe rate limits and does not retry.
package tgapi
