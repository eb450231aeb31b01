package main

import (
	"database/sql"
	"errors"
	"os"
	"testing"
)

// emptyLog moves the contents of a database's log into the database. It returns false if the database is in use.
func emptyLog(t testing.TB, path string) bool {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var busy, frames, done int
	return db.QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &done) == nil && busy == 0
}

// overwriteIndex writes garbage over the first page of an index.
func overwriteIndex(t testing.TB, path, index string) error {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	var root, size int64
	err = db.QueryRow(`SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = ?`,
		index).Scan(&root, &size)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	junk := make([]byte, size)
	for i := range junk {
		junk[i] = 0xA5
	}
	_, err = f.WriteAt(junk, (root-1)*size)
	return errors.Join(err, f.Close())
}
