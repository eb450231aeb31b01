// Package store keeps what must survive a crash in one SQLite file: what came in and is not handled, what is
// to go out and is not sent, what each chat chose, and its sessions and turns. *DB is both
// orchestrator.Store and orchestrator.Journal.
//
// It is not the domain: it decides nothing about when a turn runs or a message is sent again. It does not
// keep two instances apart either; the lock file of the command does that.
//
// Every writing method is one transaction. A process that is killed loses nothing of one that returned, and
// a power failure neither, except where a method says that it is not waited for. Whatever
// is lost by that, all that was written after it is lost as well. A context that is
// done before the transaction begins stops it; one that ends later does not, so that a write either
// happened or did not, and its caller knows which. Times are kept as milliseconds in UTC.
package store
