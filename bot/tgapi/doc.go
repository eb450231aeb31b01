// Package tgapi makes the calls of Telegram's Bot API, says what their errors mean, and takes secrets out of what they
// carry. It is the only package that imports a library for Telegram. It waits for no budget and repeats no call.
package tgapi
