// Package tgapi makes the calls of Telegram's Bot API, classifies their errors, and removes secrets from their content.
// No other package imports a library for Telegram. The package does not wait for a budget and does not repeat calls.
package tgapi
