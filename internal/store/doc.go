// Package store keeps what must survive a crash in one SQLite file: what came in and is not handled, what is
// to go out and is not sent, what each chat chose, and its sessions and turns. *DB is both
// orchestrator.Store and orchestrator.Journal.
//
// It is not the domain: it decides nothing about when a turn runs or a message is sent again. It does not
// keep two instances apart either; the lock file of the command does that.
//
// Every writing method is one transaction, and its data is on the disk when it returns. A context that is
// done before the transaction begins stops it; one that ends later does not, so that a write either
// happened or did not, and its caller knows which. Times are kept as milliseconds in UTC.
package store
