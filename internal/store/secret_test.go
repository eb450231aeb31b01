package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ductor/orchestrator"
)

// A reader of an older state keeps the log from being emptied. The next write empties it.
func TestASecretLeavesTheLogOnceNobodyReadsIt(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "ductor.db")
	db, err := Open(ctx, path, Options{BusyTimeout: time.Millisecond})
	must(t, err)
	defer db.Close()
	secret := bytes.Repeat([]byte("hunter2 "), 1000)
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1, Raw: secret}}))

	reads, err := db.read.pool.BeginTx(ctx, nil)
	must(t, err)
	var n int
	must(t, reads.QueryRow(`SELECT count(*) FROM inbox`).Scan(&n))
	must(t, db.ForgetUpdates(ctx, []int64{1}))
	if !holds(t, path+"-wal", "hunter2") {
		t.Fatal("the reader does not hold the log, so this shows nothing")
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

// TestALookWritesNothing holds that a database that was opened to be read refuses to be written, and is found by others
// as it was.
func TestALookWritesNothing(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "ductor.db")
	db := openAt(t, path)
	must(t, db.SaveCard(ctx, "t", []byte("c")))
	look, err := Look(ctx, path, Options{})
	must(t, err)
	if content, _, err := look.LoadCard(ctx, "t"); err != nil || string(content) != "c" {
		t.Errorf("it reads %q, %v", content, err)
	}
	if err := look.SaveCard(ctx, "t", []byte("d")); err == nil {
		t.Error("it was written to")
	}
	must(t, look.Close())
	must(t, db.Close())
	before := listing(t, filepath.Dir(path))
	look, err = Look(ctx, path, Options{}) // nobody else has it open
	must(t, err)
	must(t, look.Close())
	same(t, "the files after the look", listing(t, filepath.Dir(path)), before)
}
