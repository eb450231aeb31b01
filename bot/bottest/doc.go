// Package bottest contains fakes of the chat, the journal and the outbox for tests of the packages below bot.
package bottest
