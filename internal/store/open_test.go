package store

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
	"time"

	"ductor/orchestrator"
)

func TestOpenKeepsEverythingPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b 100% ?#")
	path := filepath.Join(dir, "ductor.db")
	db := openAt(t, path)
	must(t, db.SaveCard(t.Context(), "t", []byte("x")))
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
	openAt(t, path)
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != fileMode {
		t.Errorf("a database that others could read was left at %o", info.Mode().Perm())
	}
}

func TestOpenFindsWhatWasStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ductor.db")
	db := openAt(t, path)
	get[[]orchestrator.Update](t)(db.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 5, Raw: []byte("x")}}))
	must(t, db.Close())
	must(t, db.Close())
	if _, err := db.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 6}}); err == nil {
		t.Error("a closed database took a write")
	}
	if _, err := db.PendingUpdates(t.Context(), 0, 1); err == nil {
		t.Error("a closed database answered")
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Error("the write-ahead log was not folded into the file")
	}
	same(t, "after opening again", get[[]orchestrator.Update](t)(openAt(t, path).PendingUpdates(t.Context(), 0, 9)),
		[]orchestrator.Update{{ID: 5, Raw: []byte("x")}})
}

// TestOpenRefuses holds that Open leaves a file alone which it cannot use. spoil changes a healthy database
// of 50 cards.
func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  error
		says  string
	}{
		"a newer version":   {run(`PRAGMA user_version = 1000`), ErrNewer, "has version 1000"},
		"another program's": {run(`PRAGMA application_id = 5`), ErrForeign, "another file"},
		"no database": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte("my notes, not yours"), fileMode))
		}, ErrCorrupt, "Move it away"},
		"a short one": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte("SQL"), fileMode))
		}, ErrCorrupt, "Move it away"},
		"a header and nothing else": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(sqliteMagic+strings.Repeat("?", 4080)), fileMode))
		}, ErrCorrupt, "Move it away"},
		"a truncated one": {func(t *testing.T, path string) {
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.Truncate(path, info.Size()/4096/2*4096))
		}, ErrCorrupt, "Move it away"},
		"a page of garbage": {func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			must(t, err)
			info, err := f.Stat()
			must(t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte{0xA5}, 4096), info.Size()/4096/2*4096)
			must(t, errors.Join(err, f.Close()))
		}, ErrCorrupt, "Move it away"},
		"a directory": {func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, dirMode))
		}, ErrForeign, "no regular file"},
		"a log without its file": {func(t *testing.T, path string) {
			must(t, os.Rename(path, path+"-wal"))
		}, ErrCorrupt, "-wal still holds changes"},
		"a log beside an empty file": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"-wal", []byte("changes"), fileMode))
			must(t, os.Truncate(path, 0))
		}, ErrCorrupt, "-wal still holds changes"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ductor.db")
			db := openAt(t, path)
			for i := range 50 {
				must(t, db.SaveCard(t.Context(), fmt.Sprint("t", i), bytes.Repeat([]byte("content"), 400)))
			}
			must(t, db.Close())
			c.spoil(t, path)
			before := listing(t, filepath.Dir(path))

			_, err := Open(t.Context(), path, Options{})
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("%q should name %s and say %q", err, path, c.says)
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

// listing is every file of dir that holds data.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		// SQLite leaves an empty log and its index beside a file it only looked at.
		if err == nil && len(content) > 0 && !strings.HasSuffix(e.Name(), "-shm") {
			all[e.Name()] = string(content)
		}
	}
	return all
}

func TestOpenRefusesTablesOfAnotherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "theirs.db")
	run(`CREATE TABLE notes (text TEXT)`)(t, path)
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want %v", err, ErrForeign)
	}
}

func TestOpenTakesAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ductor.db")
	must(t, os.WriteFile(path, nil, fileMode)) // an earlier start was killed before it wrote anything
	openAt(t, path)
}

func TestWriteErrorsSayWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		pragma string
		want   error
	}{
		"full disk": {`PRAGMA max_page_count = 1`, ErrDiskFull},
		"read-only": {`PRAGMA query_only = 1`, ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			db := newDB(t)
			_, err := db.write.conn.ExecContext(t.Context(), c.pragma)
			must(t, err)
			big := bytes.Repeat([]byte("x"), 100_000)
			if err := db.SaveCard(t.Context(), "t", big); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			// What failed must not leave a transaction open: the next write works once there is room.
			_, err = db.write.conn.ExecContext(t.Context(), `PRAGMA max_page_count = 100000; PRAGMA query_only = 0`)
			must(t, err)
			must(t, db.RetryDisk(t.Context()))
			must(t, db.SaveCard(t.Context(), "t", big))
		})
	}
}

func TestWriteSaysThatAnotherProcessHoldsTheDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ductor.db")
	db := openAt(t, path)
	other, err := Open(t.Context(), path, Options{BusyTimeout: time.Millisecond})
	must(t, err)
	defer other.Close()
	err = db.write.do(t.Context(), func(*tx) error { return other.SaveCard(t.Context(), "t", nil) })
	if !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want %v", err, ErrBusy)
	}
}

func TestDoneContextWritesNothing(t *testing.T) {
	db := newDB(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.SaveCard(ctx, "t", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	content, _, err := db.LoadCard(t.Context(), "t")
	if content != nil || err != nil {
		t.Errorf("found %q, %v", content, err)
	}
}

func TestPanicRollsBack(t *testing.T) {
	db := newDB(t)
	func() {
		defer func() { _ = recover() }()
		_ = db.write.do(t.Context(), func(tx *tx) error {
			_, err := tx.exec(`INSERT INTO cards (turn, content) VALUES ('t', x'00')`)
			must(t, err)
			panic("a bug")
		})
	}()
	must(t, db.SaveCard(t.Context(), "other", nil))
	content, _, err := db.LoadCard(t.Context(), "t")
	if content != nil || err != nil {
		t.Errorf("found %q, %v", content, err)
	}
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

	err = migrate(ctx, conn, []step{good, bad})
	if err == nil || !strings.Contains(err.Error(), "0002_bad.sql") {
		t.Fatalf("got %v, want an error that names the migration", err)
	}
	if v := get[int](t)(pragma(ctx, conn, "user_version")); v != 1 {
		t.Errorf("version %d, want 1: the first step stands, the second does not", v)
	}
	var tables int
	must(t, conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables))
	if tables != 2 {
		t.Errorf("%d tables, want the 2 of the first step", tables)
	}

	mended := step{"0002_mended.sql", `CREATE TABLE c (x);`}
	must(t, migrate(ctx, conn, []step{good, mended}))
	must(t, migrate(ctx, conn, []step{good, mended}))
	if v := get[int](t)(pragma(ctx, conn, "user_version")); v != 2 {
		t.Errorf("version %d, want 2", v)
	}
}
