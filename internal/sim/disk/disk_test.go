package disk

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mattn/go-sqlite3"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newDisk(t testing.TB, dir string, seed uint64) *Disk {
	t.Helper()
	d, err := New(dir, seed)
	must(t, err)
	t.Cleanup(d.Close)
	return d
}

// open opens a database in WAL mode that syncs every commit.
func open(dir string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "a.db")+"?_journal_mode=WAL&_synchronous=FULL")
	if err == nil {
		_, err = db.Exec("CREATE TABLE IF NOT EXISTS a (n INTEGER PRIMARY KEY, content BLOB)")
	}
	return db, err
}

func opened(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

func insert(db *sql.DB) error {
	_, err := db.Exec("INSERT INTO a (content) VALUES (randomblob(200))")
	return err
}

func count(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	must(t, db.QueryRow("SELECT count(*) FROM a").Scan(&n))
	return n
}

// once returns faults for the first matching call only.
func once(d *Disk, fault Fault, meant func(Call) bool) {
	done := false
	d.SetFaults(func(c Call) Fault {
		if done || !meant(c) {
			return Fault{}
		}
		done = true
		return fault
	})
}

func every(op Op) func(Call) bool { return func(c Call) bool { return c.Op == op } }

func TestASlowCallTakesTheTimeOfTheBubble(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t, dir, 1)
		db := opened(t, dir)
		once(d, Fault{Delay: time.Hour}, every(Sync))
		began := time.Now()
		must(t, insert(db))
		if took := time.Since(began); took != time.Hour {
			t.Errorf("an hour took %v", took)
		}
	})
}

// SQLite uses the fake clock of a synctest bubble, for its time and while a connection waits for another.
func TestSQLiteLivesInTheTimeOfTheBubble(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		newDisk(t, dir, 1)
		db := opened(t, dir)
		var seconds int64
		must(t, db.QueryRow("SELECT unixepoch()").Scan(&seconds))
		if seconds != time.Now().Unix() {
			t.Errorf("SQLite tells %v, and the bubble %v", time.Unix(seconds, 0), time.Now())
		}
		tx, err := db.Begin()
		must(t, err)
		_, err = tx.Exec("INSERT INTO a VALUES (1, x'')")
		must(t, err)
		waited := make(chan error)
		go func() {
			_, err := db.Exec("PRAGMA busy_timeout = 60000; INSERT INTO a VALUES (2, x'')")
			waited <- err
		}()
		time.Sleep(30 * time.Second)
		must(t, tx.Commit())
		must(t, <-waited)
	})
}

func TestCallsFailAsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		fault Fault
		meant func(Call) bool
		code  sqlite3.ErrNo
		no    syscall.Errno
	}{
		"write":         {Fault{Err: syscall.EIO}, every(Write), sqlite3.ErrIoErr, syscall.EIO},
		"sync":          {Fault{Err: syscall.EIO}, every(Sync), sqlite3.ErrIoErr, syscall.EIO},
		"sync, no room": {Fault{Err: syscall.ENOSPC}, every(Sync), sqlite3.ErrIoErr, syscall.ENOSPC},
		"no room": {Fault{Err: syscall.ENOSPC}, func(c Call) bool { return c.Op == Write && c.Grows },
			sqlite3.ErrFull, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := newDisk(t, dir, 1)
			db := opened(t, dir)
			once(d, c.fault, c.meant)
			var failed sqlite3.Error
			if err := insert(db); !errors.As(err, &failed) || failed.Code != c.code || failed.SystemErrno != c.no {
				t.Errorf("got %v", err)
			}
			must(t, insert(db))
			if n := count(t, db); n != 1 {
				t.Errorf("%d rows, want the one that was acknowledged", n)
			}
		})
	}
}

func TestAReadFails(t *testing.T) {
	dir := t.TempDir()
	d := newDisk(t, dir, 1)
	must(t, insert(opened(t, dir)))
	once(d, Fault{Err: syscall.EIO}, func(c Call) bool { return c.Op == Read && c.Name == "a.db" })
	db, err := open(dir)
	var failed sqlite3.Error
	if !errors.As(err, &failed) || failed.Code != sqlite3.ErrIoErr || failed.SystemErrno != syscall.EIO {
		t.Errorf("got %v", err)
	}
	must(t, db.Close())
	if n := count(t, opened(t, dir)); n != 1 {
		t.Errorf("%d rows after the read that failed, want 1", n)
	}
}

// outcomes lists the contents that a file has after power failures with many seeds.
func outcomes(t *testing.T, change func(d *Disk, path string)) map[string]int {
	t.Helper()
	all := map[string]int{}
	for seed := range uint64(60) {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		must(t, os.WriteFile(path, []byte("old"), 0o600))
		d := newDisk(t, dir, seed)
		change(d, path)
		d.Crash(Power)
		must(t, d.Restart())
		content, err := os.ReadFile(path)
		if err != nil {
			content = []byte("gone")
		}
		all[string(content)]++
	}
	return all
}

func bringToDisk(t *testing.T, d *Disk, path string) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	must(t, errors.Join(d.Sync(f), f.Close()))
}

// A power failure preserves synced data, and any part of the rest.
func TestAPowerFailureForgetsWhatWasNotSynced(t *testing.T) {
	sqliteOpens := func(path string) { // SQLite finds no database, and leaves the file alone
		db, err := sql.Open("sqlite3", "file:"+path)
		must(t, err)
		_, _ = db.Exec("PRAGMA user_version")
		must(t, db.Close())
	}
	for name, c := range map[string]struct {
		change func(d *Disk, path string)
		want   []string
		torn   bool // it may be anything else, too
	}{
		"written and synced": {func(d *Disk, path string) {
			must(t, os.WriteFile(path, []byte("new"), 0o600))
			bringToDisk(t, d, path)
		}, []string{"new"}, false},
		"written": {func(d *Disk, path string) {
			must(t, os.WriteFile(path, []byte("new"), 0o600))
			sqliteOpens(path)
		}, []string{"new", "old"}, true},
		"made, synced, and its directory not": {func(d *Disk, path string) {
			must(t, os.Remove(path))
			sqliteOpens(path) // makes it anew
			must(t, os.WriteFile(path, []byte("new"), 0o600))
			bringToDisk(t, d, path)
		}, []string{"new", "old"}, false},
		"made, synced, and its directory too": {func(d *Disk, path string) {
			must(t, os.Remove(path))
			must(t, os.WriteFile(path, []byte("new"), 0o600))
			bringToDisk(t, d, path)
			bringToDisk(t, d, filepath.Dir(path))
		}, []string{"new"}, false},
		"removed by SQLite": {func(d *Disk, path string) {
			must(t, os.Remove(path))
			sqliteOpens(path)
		}, []string{"", "old"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := outcomes(t, c.change)
			for _, content := range c.want {
				if found[content] == 0 {
					t.Errorf("%q was never left, of %v", content, found)
				}
				delete(found, content)
			}
			if c.torn != (len(found) > 0) {
				t.Errorf("it left %v as well", found)
			}
		})
	}
}

// After a failed sync, the next one reports success, but the data of the first is not on the medium.
func TestASyncThatFailedIsNotMadeGoodByTheNext(t *testing.T) {
	for _, evict := range []bool{false, true} {
		t.Run(fmt.Sprint("evicted: ", evict), func(t *testing.T) {
			lost := 0
			for seed := range uint64(20) {
				dir := t.TempDir()
				path := filepath.Join(dir, "f")
				must(t, os.WriteFile(path, bytes.Repeat([]byte("old."), 4096), 0o600))
				d := newDisk(t, dir, seed)
				changed := bytes.Repeat([]byte("new."), 4096)
				must(t, os.WriteFile(path, changed, 0o600))
				once(d, Fault{Err: syscall.EIO, Evict: evict}, every(Sync))
				f, err := os.Open(path)
				must(t, err)
				if err := d.Sync(f); !errors.Is(err, syscall.EIO) {
					t.Errorf("the first sync says %v", err)
				}
				must(t, errors.Join(d.Sync(f), f.Close()))
				seen, err := os.ReadFile(path)
				must(t, err)
				if bytes.Equal(seen, changed) == evict && !bytes.Equal(d.names["f"].durable, changed) {
					t.Error("programs read something else than they should")
				}
				d.Crash(Power)
				must(t, d.Restart())
				left, err := os.ReadFile(path)
				must(t, err)
				if !bytes.Equal(left, changed) {
					lost++
				}
			}
			if lost == 0 {
				t.Error("nothing was ever lost")
			}
		})
	}
}

// A run with the same seed has the same result.
func TestASeedRepeatsWhatACrashLeaves(t *testing.T) {
	for seed := range uint64(5) {
		var last []byte
		for range 2 {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			d := newDisk(t, dir, seed)
			must(t, os.WriteFile(path, bytes.Repeat([]byte("content."), 1000), 0o600))
			once(d, Fault{Crash: Power}, every(Sync))
			f, err := os.Open(path)
			must(t, err)
			if err := errors.Join(d.Sync(f), f.Close()); !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			must(t, d.Restart())
			left, err := os.ReadFile(path)
			if err != nil {
				left = []byte("gone")
			}
			if last != nil && !bytes.Equal(last, left) {
				t.Errorf("seed %d leaves %d bytes, and then %d", seed, len(last), len(left))
			}
			last = left
		}
	}
}

func TestOtherDirectoriesAreNotSimulated(t *testing.T) {
	d := newDisk(t, t.TempDir(), 1)
	d.SetFaults(func(Call) Fault { return Fault{Err: syscall.EIO} })
	other := t.TempDir()
	must(t, insert(opened(t, other)))
	bringToDisk(t, d, filepath.Join(other, "a.db"))
}

func TestAnExitLeavesTheFilesAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	d := newDisk(t, dir, 1)
	db, err := open(dir)
	must(t, err)
	must(t, insert(db))
	if !d.Exit() || d.Exit() {
		t.Error("a process exits once")
	}
	_ = db.Close() // SQLite fails to delete the log
	must(t, d.Restart())
	if log, err := os.Stat(filepath.Join(dir, "a.db-wal")); err != nil || log.Size() == 0 {
		t.Errorf("the log is gone: %v", err)
	}
	if n := count(t, opened(t, dir)); n != 1 {
		t.Errorf("there are %d rows", n)
	}
}
