package store

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// A reader of an older snapshot prevents that the log is emptied. The next write empties it.
func TestSecretIsErasedOnceNoReaderNeedsTheLog(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "ductor.db")
	db, err := Open(ctx, path, Options{SQLite: sqlite.Options{BusyTimeout: time.Millisecond}})
	must(t, err)
	defer db.Close()
	secret := bytes.Repeat([]byte("hunter2 "), 1000)
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1, Raw: secret}}))
	must(t, db.Flush(ctx))

	pool, err := sql.Open("sqlite3", path)
	must(t, err)
	defer pool.Close()
	reads, err := pool.BeginTx(ctx, nil)
	must(t, err)
	var n int
	must(t, reads.QueryRow(`SELECT count(*) FROM inbox`).Scan(&n))
	must(t, db.ForgetUpdates(ctx, []int64{1}))
	if !holds(t, path+"-wal", "hunter2") {
		t.Fatal("the reader does not prevent truncation, so this test shows nothing")
	}
	must(t, reads.Rollback())
	must(t, db.SaveCard(ctx, "t", []byte("c")))
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		if holds(t, file, "hunter2") {
			t.Errorf("%s holds the secret", file)
		}
	}
}

func holds(t *testing.T, path, word string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return bytes.Contains(data, []byte(word))
}
