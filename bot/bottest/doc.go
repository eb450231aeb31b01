// Package bottest provides fakes of a Telegram chat, the database and the outbox for the tests of package bot and the
// packages below it.
package bottest
