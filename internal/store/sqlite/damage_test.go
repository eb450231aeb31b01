package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	simdisk "ductor/internal/sim/disk"
)

// copyFilesOf copies the files of an open database as they are if its process is killed now.
func copyFilesOf(t *testing.T, path string) (left string) {
	t.Helper()
	left = filepath.Join(t.TempDir(), filepath.Base(path))
	for _, end := range []string{"", "-wal", "-shm", openSuffix} {
		data, err := os.ReadFile(path + end)
		must(t, err)
		must(t, os.WriteFile(left+end, data, fileMode))
	}
	return left
}

// TestAnUncleanEndIsChecked tests that Open finds a missing, shortened or changed log before SQLite drops its content,
// and changes no file. After a restart of the machine, Open only finds a missing log.
func TestAnUncleanEndIsChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.db")
	db := openAt(t, path, Options{})
	for i := range 20 {
		must(t, put(t.Context(), db, fmt.Sprint("t", i), bytes.Repeat([]byte("content"), 400)))
	}
	damage := map[string]func(t *testing.T, path string){
		"gone":  func(t *testing.T, path string) { must(t, os.Remove(path+"-wal")) },
		"empty": func(t *testing.T, path string) { must(t, os.Truncate(path+"-wal", 0)) },
		"short": func(t *testing.T, path string) {
			info, err := os.Stat(path + "-wal")
			must(t, err)
			must(t, os.Truncate(path+"-wal", info.Size()/2))
		},
		"changed": func(t *testing.T, path string) { overwrite(t, path+"-wal", 0.5, 16) },
		"of another file": func(t *testing.T, path string) {
			other := filepath.Join(t.TempDir(), "other.db")
			db := openAt(t, other, Options{})
			must(t, put(t.Context(), db, "other", nil))
			data, err := os.ReadFile(other + "-wal")
			must(t, err)
			must(t, os.WriteFile(path+"-wal", data, fileMode))
		},
	}
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			left := copyFilesOf(t, path)
			f(t, left)
			before := listing(t, filepath.Dir(left))
			for what, err := range map[string]error{"Open": errorOf(Open(t.Context(), left, items, Options{})),
				"OpenReadOnly": errorOf(OpenReadOnly(t.Context(), left, items, Options{}))} {
				if !errors.Is(err, ErrLogLost) && !errors.Is(err, errLogLost) || !errors.Is(err, ErrCorrupt) {
					t.Errorf("%s returned %v", what, err)
				}
			}
			same(t, "the files", listing(t, filepath.Dir(left)), before)
		})
	}
	left := copyFilesOf(t, path)
	must(t, os.WriteFile(left+openSuffix, []byte("another start"), fileMode))
	overwrite(t, left+"-wal", 0.5, 16)
	openAt(t, left, Options{})

	left = copyFilesOf(t, path)
	must(t, os.WriteFile(left+openSuffix, []byte("another start"), fileMode))
	damage["gone"](t, left)
	if _, err := Open(t.Context(), left, items, Options{}); !errors.Is(err, ErrLogLost) {
		t.Errorf("of a log that is gone after the machine went down Open returned %v", err)
	}
	same(t, "items", len(names(t, openAt(t, copyFilesOf(t, path), Options{}))), 20)
}

func errorOf[T any](_ T, err error) error { return err }

// overwrite overwrites n bytes at a relative position in a file with random data.
func overwrite(t *testing.T, path string, at float64, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	junk := make([]byte, n)
	for i := range junk {
		junk[i] = byte(rand.Uint32())
	}
	_, err = f.WriteAt(junk, int64(at*float64(info.Size())))
	must(t, errors.Join(err, f.Close()))
}

// TestADamagedFileAndItsLogStayUnchanged tests that the log is neither copied into a damaged file nor deleted.
func TestADamagedFileAndItsLogStayUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.db")
	db := openAt(t, path, Options{})
	for i := range 50 {
		must(t, put(t.Context(), db, fmt.Sprint("t", i), bytes.Repeat([]byte("content"), 400)))
	}
	must(t, db.writer.truncate(t.Context()))
	must(t, put(t.Context(), db, "in the log", nil))
	left := copyFilesOf(t, path)
	overwrite(t, left, 0.5, 4096)
	before := listing(t, filepath.Dir(left))
	if _, err := Open(t.Context(), left, items, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Open returned %v", err)
	}
	same(t, "the files", listing(t, filepath.Dir(left)), before)
	if whole, err := newDB(t).CopyRows(t.Context(), left); whole || err != nil {
		t.Errorf("CopyRows returned %v, %v", whole, err)
	}
	same(t, "the files", listing(t, filepath.Dir(left)), before)
}

// TestCopyRowsNoticesLostReferences tests that rows do not count as complete if one refers to a row that is gone.
func TestCopyRowsNoticesLostReferences(t *testing.T) {
	withParts := func(path string) *DB {
		db := openAt(t, path, Options{})
		must(t, db.Write(t.Context(), func(t *Tx) error {
			_, err := t.Exec("CREATE TABLE parts (item TEXT REFERENCES items (name))")
			return err
		}))
		return db
	}
	for rename, want := range map[string]bool{"SELECT 1": true, "UPDATE items SET name = 'junk'": false} {
		path := filepath.Join(t.TempDir(), "items.db")
		db := withParts(path)
		must(t, put(t.Context(), db, "one", nil))
		must(t, db.Write(t.Context(), func(t *Tx) error {
			_, err := t.Exec("INSERT INTO parts VALUES ('one')")
			return err
		}))
		must(t, db.writer.withToken(t.Context(), func(*Tx) error {
			_, err := db.writer.conn.ExecContext(t.Context(), "PRAGMA foreign_keys = OFF; "+rename)
			return err
		}))
		whole, err := withParts(filepath.Join(t.TempDir(), "items.db")).CopyRows(t.Context(), copyFilesOf(t, path))
		if whole != want || err != nil {
			t.Errorf("after %s CopyRows returns %v, %v", rename, whole, err)
		}
	}
}

// TestCopyRowsRebuildsDamagedIndexes tests that CopyRows copies all rows if pages of an index are garbage, or if an
// index lacks a row, which PRAGMA quick_check does not find.
func TestCopyRowsRebuildsDamagedIndexes(t *testing.T) {
	for _, how := range []string{"a row is missing", "garbage"} {
		t.Run(how, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "items.db")
			db := openAt(t, path, Options{})
			must(t, db.Write(t.Context(), func(t *Tx) error {
				_, err := t.Exec("CREATE INDEX by_content ON items(content)")
				return err
			}))
			for i := range 20 {
				must(t, put(t.Context(), db, fmt.Sprint("t", i), bytes.Repeat([]byte{byte(i)}, 40)))
			}
			root, err := One(t.Context(), db, Value[int64],
				"SELECT rootpage FROM sqlite_schema WHERE name = 'by_content'")
			must(t, err)
			must(t, db.Close())
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			must(t, err)
			if page := make([]byte, 4096); how == "garbage" {
				_, err = f.WriteAt(bytes.Repeat([]byte{0xA5}, len(page)), (root-1)*4096)
			} else {
				_, err = f.ReadAt(page, (root-1)*4096)
				must(t, err)
				page[4]-- // its number of cells
				_, err = f.WriteAt(page, (root-1)*4096)
			}
			must(t, errors.Join(err, f.Close()))
			if _, err := Open(t.Context(), path, items, Options{}); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("Open returned %v", err)
			}
			into := newDB(t)
			if whole, err := into.CopyRows(t.Context(), path); !whole || err != nil {
				t.Fatalf("CopyRows returned %v, %v", whole, err)
			}
			same(t, "items", len(names(t, into)), 20)
		})
	}
}

// TestUndecodableRowsAreSkipped tests that a query returns the other rows and that Unreadable lists the
// table.
func TestUndecodableRowsAreSkipped(t *testing.T) {
	db := newDB(t)
	for _, name := range []string{"1", "damaged", "3"} {
		must(t, put(t.Context(), db, name, nil))
	}
	const query = "SELECT name FROM items ORDER BY name"
	all, err := Many(t.Context(), db, Value[int], query)
	must(t, err)
	same(t, "items", all, []int{1, 3})
	must(t, db.Write(t.Context(), func(tx *Tx) error {
		all, err := ManyIn(tx, Value[int], query)
		same(t, "items in a transaction", all, []int{1, 3})
		return err
	}))
	same(t, "tables", db.Unreadable(), []string{"items"})
	db = newDB(t)
	must(t, put(t.Context(), db, "damaged", nil))
	must(t, db.Write(t.Context(), func(tx *Tx) error {
		_, err := ManyIn(tx, Value[int], "UPDATE items SET content = x'00' RETURNING name")
		return err
	}))
	same(t, "tables after an update", db.Unreadable(), []string{"items"})
}

// TestALargeFileIsCheckedLater tests that Open does not read a large file. CheckPages, or a read of the damaged part,
// finds damage, and later writes fail.
func TestALargeFileIsCheckedLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.db")
	db := openAt(t, path, Options{})
	for i := range 50 {
		must(t, put(t.Context(), db, fmt.Sprint("t", i), bytes.Repeat([]byte("content"), 400)))
	}
	must(t, db.Close())
	overwrite(t, path, 0.5, 4096)
	for what, find := range map[string]func(db *DB) error{
		"the check": func(db *DB) error { return db.CheckPages(t.Context()) },
		"a read": func(db *DB) error {
			return errorOf(Many(t.Context(), db, Value[[]byte],
				`SELECT content FROM items`))
		},
	} {
		db, err := Open(t.Context(), path, items, Options{MaxCheckOnOpen: 1})
		must(t, err)
		if !db.Unchecked() {
			t.Error("the file was read")
		}
		if err := find(db); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s returned %v", what, err)
		}
		wantDisk(t, db, "damaged")
		if err := put(t.Context(), db, "later", nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a write returned %v", err)
		}
		if err := db.Close(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Close returned %v", err)
		}
		_ = errors.Join(db.reader.close(), db.writer.close()) // Close left the connections open
	}
}

// TestAFullDiskIsNotADamagedDatabase fills the disk at each call. A log that lost data on a full disk looks damaged.
func TestAFullDiskIsNotADamagedDatabase(t *testing.T) {
	for at := range 45 {
		l := life{Acts: []action{"write"}, Crash: simdisk.Power, Faults: []fault{{At: at, Err: syscall.ENOSPC,
			Evict: true}}}
		if err := runLives(t, 0, []life{l}, (*simdisk.Disk).Sync); err != nil {
			t.Errorf("at the call %d: %v", at, err)
		}
	}
}
