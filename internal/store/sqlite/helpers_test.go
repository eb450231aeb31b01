package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"ductor/internal/testprogram"
)

func TestMain(m *testing.M) { testprogram.Main(m) }

// items is the schema of the tests: contents with names.
var items = Schema{
	ApplicationID: 0x74657374,
	Migrations: fstest.MapFS{
		"0001_items.sql": {Data: []byte(`CREATE TABLE items (name TEXT PRIMARY KEY, content BLOB)`)},
	},
}

func newDB(t testing.TB) *DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "items.db"), Options{})
}

func openAt(t testing.TB, path string, opts Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, items, opts)
	must(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

const insert = `INSERT INTO items (name, content) VALUES (?, ?)`

// put stores an item.
func put(ctx context.Context, db *DB, name string, content []byte) error {
	return db.Write(ctx, func(t *Tx) error {
		_, err := t.Exec(insert, name, content)
		return err
	})
}

// names lists the names of the items.
func names(t testing.TB, db *DB) []string {
	t.Helper()
	all, err := Many(t.Context(), db, Value[string], `SELECT name FROM items ORDER BY name`)
	must(t, err)
	return all
}

// must fails the test if a step fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// syncer replaces fdatasync.
type syncer struct{ do func(*os.File) error }

func (s *syncer) options() Options {
	s.do = fdatasync
	return Options{Sync: func(f *os.File) error {
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil
		}
		return s.do(f)
	}}
}

func (s *syncer) fail(err error) { s.do = func(*os.File) error { return err } }
func (s *syncer) work()          { s.do = fdatasync }
