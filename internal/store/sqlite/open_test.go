package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestOpenKeepsEverythingPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b 100% ?#")
	path := filepath.Join(dir, "items.db")
	db := openAt(t, path, Options{})
	must(t, put(t.Context(), db, "t", []byte("x")))
	for name, want := range map[string]os.FileMode{
		dir: dirMode, path: fileMode, path + "-wal": fileMode, path + "-shm": fileMode,
	} {
		info, err := os.Stat(name)
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(name), info.Mode().Perm(), want)
		}
	}
	must(t, db.Close())
	must(t, os.Chmod(path, 0o644))
	openAt(t, path, Options{})
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != fileMode {
		t.Errorf("a database that others could read was left at %o", info.Mode().Perm())
	}
}

// unusableFiles are ways in which a file is not a usable database. damage changes a healthy database of 50 items.
var unusableFiles = map[string]struct {
	damage func(t *testing.T, path string)
	want   error
	text   string
}{
	"a newer version":   {run(`PRAGMA user_version = 1000`), ErrNewer, "has version 1000"},
	"another program's": {run(`PRAGMA application_id = 5`), ErrForeign, "another file"},
	"no database": {func(t *testing.T, path string) {
		must(t, os.WriteFile(path, []byte("my notes, not yours"), fileMode))
	}, ErrCorrupt, "moves it aside"},
	"a short one": {func(t *testing.T, path string) {
		must(t, os.WriteFile(path, []byte("SQL"), fileMode))
	}, ErrCorrupt, "moves it aside"},
	"a header and nothing else": {func(t *testing.T, path string) {
		must(t, os.WriteFile(path, []byte(sqliteMagic+strings.Repeat("?", 4080)), fileMode))
	}, ErrCorrupt, "moves it aside"},
	"a truncated one": {func(t *testing.T, path string) {
		info, err := os.Stat(path)
		must(t, err)
		must(t, os.Truncate(path, info.Size()/4096/2*4096))
	}, ErrCorrupt, "moves it aside"},
	"a page of garbage": {func(t *testing.T, path string) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		info, err := f.Stat()
		must(t, err)
		_, err = f.WriteAt(bytes.Repeat([]byte{0xA5}, 4096), info.Size()/4096/2*4096)
		must(t, errors.Join(err, f.Close()))
	}, ErrCorrupt, "moves it aside"},
	"a directory": {func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, os.Mkdir(path, dirMode))
	}, ErrForeign, "not a regular file"},
	"a log without its file": {func(t *testing.T, path string) {
		must(t, os.Rename(path, path+"-wal"))
	}, ErrCorrupt, "-wal still holds changes"},
	"a log beside an empty file": {func(t *testing.T, path string) {
		must(t, os.WriteFile(path+"-wal", bytes.Repeat([]byte("changes"), 10), fileMode))
		must(t, os.Truncate(path, 0))
	}, ErrCorrupt, "-wal still holds changes"},
}

// TestOpenRefuses also tests that Open does not change such a file.
func TestOpenRefuses(t *testing.T) {
	for name, c := range unusableFiles {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "items.db")
			db := openAt(t, path, Options{})
			for i := range 50 {
				must(t, put(t.Context(), db, fmt.Sprint("t", i), bytes.Repeat([]byte("content"), 400)))
			}
			must(t, db.Close())
			c.damage(t, path)
			before := listing(t, filepath.Dir(path))

			_, err := Open(t.Context(), path, items, Options{})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), path) {
				t.Errorf("%q should name %s and say %q", err, path, c.text)
			}
			same(t, "the files after it was refused", listing(t, filepath.Dir(path)), before)
		})
	}
}

func run(statement string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		raw, err := sql.Open("sqlite3", path)
		must(t, err)
		_, err = raw.Exec(statement)
		must(t, errors.Join(err, raw.Close()))
	}
}

// listing returns the content of every file in dir.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		// SQLite leaves an empty log and its index beside a file that it only read.
		if err == nil && len(content) > 0 && !strings.HasSuffix(e.Name(), "-shm") {
			all[e.Name()] = string(content)
		}
	}
	return all
}

func TestOpenRefusesTablesOfAnotherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "theirs.db")
	run(`CREATE TABLE notes (text TEXT)`)(t, path)
	if _, err := Open(t.Context(), path, items, Options{}); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want %v", err, ErrForeign)
	}
}

func TestOpenAcceptsAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.db")
	must(t, os.WriteFile(path, nil, fileMode)) // an earlier start was killed before it wrote
	openAt(t, path, Options{})
}

func TestWriteErrors(t *testing.T) {
	for name, c := range map[string]struct {
		pragma string
		want   error
	}{
		"full disk": {`PRAGMA max_page_count = 1`, ErrDiskFull},
		"read-only": {`PRAGMA query_only = 1`, ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			db := newDB(t)
			_, err := db.writer.conn.ExecContext(t.Context(), c.pragma)
			must(t, err)
			big := bytes.Repeat([]byte("x"), 100_000)
			if err := put(t.Context(), db, "t", big); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			// A failure must leave no transaction open: the next write works once the disk has space.
			_, err = db.writer.conn.ExecContext(t.Context(), `PRAGMA max_page_count = 100000; PRAGMA query_only = 0`)
			must(t, err)
			must(t, db.RetryDisk(t.Context()))
			must(t, put(t.Context(), db, "t", big))
		})
	}
}

func TestWriteReturnsErrBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.db")
	db := openAt(t, path, Options{})
	other, err := Open(t.Context(), path, items, Options{BusyTimeout: time.Millisecond})
	must(t, err)
	defer other.Close()
	err = db.Write(t.Context(), func(*Tx) error { return put(t.Context(), other, "t", nil) })
	if !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want %v", err, ErrBusy)
	}
}

func TestDoneContextWritesNothing(t *testing.T) {
	db := newDB(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := put(ctx, db, "t", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	same(t, "items", names(t, db), []string(nil))
}

func TestPanicRollsBack(t *testing.T) {
	db := newDB(t)
	func() {
		defer func() { _ = recover() }()
		_ = db.Write(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(insert, "t", []byte{0})
			must(t, err)
			panic("a bug")
		})
	}()
	must(t, put(t.Context(), db, "other", nil))
	same(t, "items", names(t, db), []string{"other"})
}

func TestMigrationsAreAllOrNothing(t *testing.T) {
	ctx := t.Context()
	raw, err := sql.Open("sqlite3", filepath.Join(t.TempDir(), "m.db"))
	must(t, err)
	defer raw.Close()
	conn, err := raw.Conn(ctx)
	must(t, err)
	defer conn.Close()
	good := step{"0001_good.sql", `CREATE TABLE a (x); CREATE TABLE b (x);`}
	bad := step{"0002_bad.sql", `CREATE TABLE c (x); CREATE TABLE a (x);`}

	err = items.migrate(ctx, conn, []step{good, bad})
	if err == nil || !strings.Contains(err.Error(), "0002_bad.sql") {
		t.Fatalf("got %v, want an error that names the migration", err)
	}
	if v := version(t, conn); v != 1 {
		t.Errorf("version %d, want 1: the first step stands, the second does not", v)
	}
	var tables int
	must(t, conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables))
	if tables != 2 {
		t.Errorf("%d tables, want the 2 of the first step", tables)
	}

	repaired := step{"0002_repaired.sql", `CREATE TABLE c (x);`}
	must(t, items.migrate(ctx, conn, []step{good, repaired}))
	must(t, items.migrate(ctx, conn, []step{good, repaired}))
	if v := version(t, conn); v != 2 {
		t.Errorf("version %d, want 2", v)
	}
}

func version(t *testing.T, conn *sql.Conn) int {
	t.Helper()
	v, err := pragma(t.Context(), conn, "user_version")
	must(t, err)
	return v
}

// TestReadOnlyChangesNothing tests that a read-only database rejects writes and does not change its files.
func TestReadOnlyChangesNothing(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "items.db")
	db := openAt(t, path, Options{})
	must(t, put(ctx, db, "a", nil))
	reading, err := OpenReadOnly(ctx, path, items, Options{})
	must(t, err)
	same(t, "items", names(t, reading), []string{"a"})
	if err := put(ctx, reading, "b", nil); err == nil {
		t.Error("it was written to")
	}
	must(t, reading.Close())
	must(t, db.Close())
	before := listing(t, filepath.Dir(path))
	reading, err = OpenReadOnly(ctx, path, items, Options{}) // the only connection
	must(t, err)
	must(t, reading.Close())
	same(t, "the files afterwards", listing(t, filepath.Dir(path)), before)
}

// TestBackupBeforeAMigration tests that the copy has the old content, except for data that CleanCopy removes.
func TestBackupBeforeAMigration(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "items.db")
	db := openAt(t, path, Options{})
	must(t, put(ctx, db, "kept", []byte("kept")))
	must(t, put(ctx, db, "secret", []byte("hunter2")))
	must(t, db.Close())
	next := items
	next.CleanCopy = `UPDATE items SET content = x'' WHERE name = 'secret'`
	next.Migrations = fstest.MapFS{
		"0001_items.sql": items.Migrations.(fstest.MapFS)["0001_items.sql"],
		"0002_more.sql":  {Data: []byte(`CREATE TABLE more (x)`)},
	}
	migrated, err := Open(ctx, path, next, Options{})
	must(t, err)
	same(t, "items", names(t, migrated), []string{"kept", "secret"})
	must(t, migrated.Close())
	data, err := os.ReadFile(path + backupSuffix)
	must(t, err)
	if bytes.Contains(data, []byte("hunter2")) || !bytes.Contains(data, []byte("kept")) {
		t.Error("the copy has data that CleanCopy removes, or lacks other data")
	}
	if _, err := OpenReadOnly(ctx, path, items, Options{}); !errors.Is(err, ErrNewer) {
		t.Errorf("the older version returned %v, want %v", err, ErrNewer)
	}
	must(t, os.Rename(path+backupSuffix, path))
	same(t, "items of the copy", names(t, openAt(t, path, Options{})), []string{"kept", "secret"})
}
