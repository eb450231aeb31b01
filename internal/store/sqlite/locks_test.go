package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInspectingAnOpenDatabaseKeepsItsLocks tests that a process that inspects its own open database does not lose its
// locks. Without its lock on the file, another process that closes the database deletes the log. Without its lock on
// the index, another process that opens the database truncates the index, and this process dies by SIGBUS.
func TestInspectingAnOpenDatabaseKeepsItsLocks(t *testing.T) {
	looks := map[string]func(t *testing.T, db *DB, path string, disk *syncer){
		"a reader": func(t *testing.T, _ *DB, path string, _ *syncer) {
			looking, err := OpenReadOnly(t.Context(), path, items, Options{})
			must(t, err)
			must(t, looking.Close())
		},
		"a copy": func(t *testing.T, _ *DB, path string, _ *syncer) {
			must(t, Copy(t.Context(), path, path+".copy", items))
		},
		"a second one that writes": func(t *testing.T, _ *DB, path string, _ *syncer) {
			second, err := Open(t.Context(), path, items, Options{})
			must(t, err)
			must(t, second.Close())
		},
		"a link": func(t *testing.T, _ *DB, path string, _ *syncer) {
			must(t, os.Symlink(path, path+".link"))
			looking, err := OpenReadOnly(t.Context(), path+".link", items, Options{})
			must(t, err)
			must(t, looking.Close())
		},
		"a check of the log": func(t *testing.T, db *DB, _ string, disk *syncer) {
			disk.fail(syscall.ENOSPC)
			must(t, put(t.Context(), db, "full", bytes.Repeat([]byte("f"), 1<<16)))
			disk.work()
			must(t, db.RetryDisk(t.Context()))
		},
	}
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "items.db")
			var disk syncer
			db := openAt(t, path, disk.options())
			must(t, put(t.Context(), db, "before", nil))
			look(t, db, path, &disk)
			for _, file := range []string{path, path + "-shm"} {
				if !isLocked(t, file) {
					t.Errorf("no process has a lock on %s", file)
				}
			}
		})
	}
}

// isLocked reports whether a process has a POSIX lock on a file. The kernel lists the locks in several pieces. An entry
// can be missing while other processes lock files, so isLocked reads the list again. A lost lock never comes back.
func isLocked(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	for range 20 {
		locks, err := os.ReadFile("/proc/locks")
		must(t, err)
		if strings.Contains(string(locks), fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino)) {
			return true
		}
	}
	return false
}
