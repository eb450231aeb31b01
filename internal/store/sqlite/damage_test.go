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

// leave copies the files of an open database, as a process that is killed now leaves them.
func leave(t *testing.T, path string) (left string) {
	t.Helper()
	left = filepath.Join(t.TempDir(), filepath.Base(path))
	for _, end := range []string{"", "-wal", "-shm", openSuffix} {
		data, err := os.ReadFile(path + end)
		must(t, err)
		must(t, os.WriteFile(left+end, data, fileMode))
	}
	return left
}

// TestAnUncleanEndIsChecked: a log that is gone, short or changed is found before SQLite drops what it held, and no
// file changes. After the machine went down only a log that is gone is.
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
		"changed": func(t *testing.T, path string) { spoil(t, path+"-wal", 0.5, 16) },
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
			left := leave(t, path)
			f(t, left)
			before := listing(t, filepath.Dir(left))
			for what, err := range map[string]error{"Open": second(Open(t.Context(), left, items, Options{})),
				"OpenReadOnly": second(OpenReadOnly(t.Context(), left, items, Options{}))} {
				if !errors.Is(err, ErrLogLost) && !errors.Is(err, errLogLost) || !errors.Is(err, ErrCorrupt) {
					t.Errorf("%s says %v", what, err)
				}
			}
			same(t, "the files", listing(t, filepath.Dir(left)), before)
		})
	}
	left := leave(t, path)
	must(t, os.WriteFile(left+openSuffix, []byte("another start"), fileMode))
	spoil(t, left+"-wal", 0.5, 16)
	openAt(t, left, Options{})

	left = leave(t, path)
	must(t, os.WriteFile(left+openSuffix, []byte("another start"), fileMode))
	damage["gone"](t, left)
	if _, err := Open(t.Context(), left, items, Options{}); !errors.Is(err, ErrLogLost) {
		t.Errorf("of a log that is gone after the machine went down Open says %v", err)
	}
	same(t, "items", len(names(t, openAt(t, leave(t, path), Options{}))), 20)
}

func second[T any](_ T, err error) error { return err }

// spoil writes random bytes into a file, a part of the way through it.
func spoil(t *testing.T, path string, at float64, n int) {
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

// TestADamagedFileWithALogStaysAsItIs: neither is the log folded into it, nor does it go.
func TestADamagedFileWithALogStaysAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.db")
	db := openAt(t, path, Options{})
	for i := range 50 {
		must(t, put(t.Context(), db, fmt.Sprint("t", i), bytes.Repeat([]byte("content"), 400)))
	}
	must(t, db.writer.truncate(t.Context()))
	must(t, put(t.Context(), db, "in the log", nil))
	left := leave(t, path)
	spoil(t, left, 0.5, 4096)
	before := listing(t, filepath.Dir(left))
	if _, err := Open(t.Context(), left, items, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Open says %v", err)
	}
	same(t, "the files", listing(t, filepath.Dir(left)), before)
	if whole, err := newDB(t).CopyRows(t.Context(), left); whole || err != nil {
		t.Errorf("CopyRows says %v, %v", whole, err)
	}
	same(t, "the files", listing(t, filepath.Dir(left)), before)
}

// TestADamagedIndexIsMadeAnew: CopyRows copies all rows, whether pages of an index are garbage or an index lacks a row,
// which a quick check does not find.
func TestADamagedIndexIsMadeAnew(t *testing.T) {
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
				page[4]-- // the number of its cells
				_, err = f.WriteAt(page, (root-1)*4096)
			}
			must(t, errors.Join(err, f.Close()))
			if _, err := Open(t.Context(), path, items, Options{}); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("Open says %v", err)
			}
			into := newDB(t)
			if whole, err := into.CopyRows(t.Context(), path); !whole || err != nil {
				t.Fatalf("CopyRows says %v, %v", whole, err)
			}
			same(t, "items", len(names(t, into)), 20)
		})
	}
}

// TestRowsThatCannotBeDecodedArePassedOver: others are read, and the table is named.
func TestRowsThatCannotBeDecodedArePassedOver(t *testing.T) {
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
}

// TestALargeFileIsCheckedLater: Open does not read it, and what is damaged in it is found by CheckPages or by the read
// that meets it. Nothing is written after that.
func TestALargeFileIsCheckedLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "items.db")
	db := openAt(t, path, Options{})
	for i := range 50 {
		must(t, put(t.Context(), db, fmt.Sprint("t", i), bytes.Repeat([]byte("content"), 400)))
	}
	must(t, db.Close())
	spoil(t, path, 0.5, 4096)
	for what, find := range map[string]func(db *DB) error{
		"the check": func(db *DB) error { return db.CheckPages(t.Context()) },
		"a read": func(db *DB) error {
			return second(Many(t.Context(), db, Value[[]byte],
				`SELECT content FROM items`))
		},
	} {
		db, err := Open(t.Context(), path, items, Options{MaxCheckOnOpen: 1})
		must(t, err)
		if !db.Unchecked() {
			t.Error("the file was read")
		}
		if err := find(db); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s says %v", what, err)
		}
		diskIs(t, db, "damaged")
		if err := put(t.Context(), db, "later", nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a write says %v", err)
		}
		if err := db.Close(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Close says %v", err)
		}
		_ = errors.Join(db.reader.close(), db.writer.close()) // Close left them to the end of the process
	}
}

// TestAFullDiskIsNoDamagedDatabase: what a full disk lost of the log reads like a damaged database, at whichever call.
func TestAFullDiskIsNoDamagedDatabase(t *testing.T) {
	for at := range 45 {
		l := life{Acts: []act{"write"}, Crash: simdisk.Power, Faults: []fault{{At: at, Err: syscall.ENOSPC,
			Evict: true}}}
		if err := liveAll(t, 0, []life{l}, (*simdisk.Disk).Sync); err != nil {
			t.Errorf("at the call %d: %v", at, err)
		}
	}
}
