// Package tgapi makes the calls of Telegram's Bot API, classifies their errors, and removes secrets from their content.
// It is the only package that imports a library for Telegram. It neither waits for a budget nor repeats calls.
package tgapi
