// Package tgapi makes the calls of Telegram's Bot API, classifies their errors, and removes secrets from their
// content. It is the only package that imports a library for Telegram. It does not wait for budgets and does not
// retry calls.
package tgapi
