package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func item(name string) func(*Tx) error {
	return func(tx *Tx) error {
		_, err := tx.Exec(insert, name, nil)
		return err
	}
}

// Reads see shared writes immediately. The next write, CommitShared, a Flush or a timer commits
// them. They survive failures of other
// writes.
func TestSharedWrites(t *testing.T) {
	refused := errors.New("refused")
	for name, then := range map[string]func(*DB) error{
		"a write": func(db *DB) error { return db.WriteLazily(t.Context(), item("then")) },
		"a commit": func(db *DB) error {
			return errors.Join(db.CommitShared(t.Context()), db.CommitShared(t.Context()))
		},
		"a flush": func(db *DB) error { return db.Flush() },
		"time":    func(*DB) error { time.Sleep(5 * shareTime); return nil },
		"the end": func(db *DB) error { return db.Close() },
		"an error": func(db *DB) error {
			err := db.Write(t.Context(), func(tx *Tx) error { return errors.Join(item("lost")(tx), refused) })
			if !errors.Is(err, refused) {
				t.Errorf("a refused write: %v", err)
			}
			return db.Flush()
		},
		"a panic": func(db *DB) error {
			func() {
				defer func() { _ = recover() }()
				_ = db.WriteShared(t.Context(), func(tx *Tx) error { _ = item("lost")(tx); panic("no") })
			}()
			return db.Flush()
		},
		"a rollback": func(db *DB) error { // like on a full disk
			err := db.Write(t.Context(), func(tx *Tx) error {
				_, err := tx.Exec("ROLLBACK")
				return errors.Join(err, refused)
			})
			if !errors.Is(err, refused) {
				t.Errorf("a refused write: %v", err)
			}
			return db.Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "items.db")
			db := openAt(t, path, Options{})
			for _, name := range []string{"one", "two"} {
				if err := db.WriteShared(context.Background(), item(name)); err != nil {
					t.Fatal(err)
				}
			}
			same(t, "what reads see", names(t, db), []string{"one", "two"})
			if err := then(db); err != nil {
				t.Fatal(err)
			}
			want := []string{"one", "two"}
			if name == "a write" {
				want = []string{"one", "then", "two"}
			}
			same(t, "what is in the file", names(t, openAt(t, path, Options{})), want)
		})
	}
}

// After some errors, SQLite itself rolls the whole transaction back, even if the statement only reads: for example after
// an error of the disk, or as here for OR ROLLBACK. The shared writes are applied again, and each of them once.
func TestSharedWritesSurviveARollbackBySQLite(t *testing.T) {
	for name, fail := range map[string]func(*DB, func(*Tx) error) error{
		"in a read": func(db *DB, f func(*Tx) error) error {
			_, err := db.writer.read(t.Context(), f)
			return err
		},
		"in a shared write": func(db *DB, f func(*Tx) error) error { return db.WriteShared(t.Context(), f) },
		"in a write":        func(db *DB, f func(*Tx) error) error { return db.Write(t.Context(), f) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "items.db")
			db := openAt(t, path, Options{})
			share := func(name string) {
				t.Helper()
				if err := db.WriteShared(t.Context(), item(name)); err != nil {
					t.Fatal(err)
				}
			}
			share("one")
			err := fail(db, func(tx *Tx) error {
				_, _ = tx.Exec("INSERT OR ROLLBACK INTO items (name) VALUES ('one')") // f overlooks this error
				return item("lost")(tx)
			})
			if err == nil {
				t.Error("no error")
			}
			share("two")
			if err := db.Flush(); err != nil {
				t.Fatal(err)
			}
			same(t, "what reads see", names(t, db), []string{"one", "two"})
			same(t, "what is in the file", names(t, openAt(t, path, Options{})), []string{"one", "two"})
		})
	}
}

// A power failure loses lazy writes of at most the last second, even if no other write follows.
func TestLazyWritesAreFlushedAfterASecond(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.db") // outside of the bubble, which ends before the directory is removed
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(context.Background(), path, items, Options{})
		must(t, err)
		must(t, db.Flush())
		for i := range 3 {
			must(t, db.WriteLazily(context.Background(), item(strings.Repeat("x", i+1))))
			n := db.writer.log.committed.Load()
			time.Sleep(lazyTime / 2)
			synctest.Wait()
			if db.writer.log.isFlushed(n) {
				t.Error("it was flushed at once")
			}
			time.Sleep(lazyTime)
			synctest.Wait()
			if !db.writer.log.isFlushed(n) {
				t.Error("it is not on the disk after a second")
			}
		}
		must(t, db.Close())
	})
}
