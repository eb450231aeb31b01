package main

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ductor/internal/app"
)

// database returns the path of ductor's database.
func (town *town) database() string { return filepath.Join(town.cfg.Storage.Dir, app.DatabaseFile) }

// openDatabase opens a database beside ductor.
func openDatabase(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// emptyLog has what is in the log of a database brought into it, where a read finds what becomes of it; false if it is in use.
func emptyLog(t testing.TB, path string) bool {
	t.Helper()
	db := openDatabase(t, path)
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
