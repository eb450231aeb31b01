package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	simdisk "ductor/internal/sim/disk"
)

// action is an action of a program on a database.
type action string

const (
	writes       action = "write"
	writesLazily action = "write lazily"
	writesSoon   action = "write soon"
	flushes      action = "flush"
	writesSecret action = "write a secret"
	waits        action = "wait"
	rests        action = "rest"
	reads        action = "read"
	reopens      action = "close and open"
)

// life is the actions of a program until a crash at a call of the disk, or until the end.
type life struct {
	Acts   []action
	Crash  simdisk.Crash
	At     int
	Faults []fault
}

// fault is a failing call.
type fault struct {
	At    int
	Read  bool // a read fails, not a changing call
	Err   syscall.Errno
	Evict bool
}

func drawFault(t *rapid.T) fault {
	return fault{
		At:    rapid.IntRange(1, 100).Draw(t, "at"),
		Read:  rapid.IntRange(0, 5).Draw(t, "read") == 5,
		Err:   rapid.SampledFrom([]syscall.Errno{syscall.EIO, syscall.ENOSPC}).Draw(t, "err"),
		Evict: rapid.Bool().Draw(t, "evict"),
	}
}

func drawLife(t *rapid.T) life {
	// Transactions are small, and most are lazy or shared.
	acts := []action{writes, writesLazily, writesLazily, writesSoon, writesSoon, flushes, writesSecret, waits, rests,
		reads, reopens}
	return life{
		Acts:  rapid.SliceOfN(rapid.SampledFrom(acts), 1, 20).Draw(t, "acts"),
		Crash: rapid.SampledFrom([]simdisk.Crash{simdisk.Kill, simdisk.Power}).Draw(t, "crash"),
		At:    rapid.IntRange(1, 100).Draw(t, "at"),
	}
}

func drawFaultyLife(t *rapid.T) life {
	l := drawLife(t)
	l.Faults = rapid.SliceOfN(rapid.Custom(drawFault), 1, 3).Draw(t, "faults")
	return l
}

// history tracks the items of all lives. Items are numbered from 0 in the order of writing.
type history struct {
	opened  bool // whether the database was ever open
	tried   int  // number of items that were written or whose write failed
	alive   int  // number of items that survive the end of the process
	durable int  // number of items that survive a power failure
	evicted bool // the kernel may have forgotten the items that are not durable
}

// TestNothingAcknowledgedIsLostByACrash crashes at any call that reaches the disk. Afterwards the database is intact,
// has all items that must survive the crash, and lacks no write without all later ones.
func TestNothingAcknowledgedIsLostByACrash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		lives := rapid.SliceOfN(rapid.Custom(drawLife), 1, 4).Draw(rt, "lives")
		if err := runLives(t, seed, lives, (*simdisk.Disk).Sync); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestNothingAcknowledgedIsLostByADiskThatFails is the same test with failing calls: for lack of space, or permanently.
func TestNothingAcknowledgedIsLostByADiskThatFails(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		lives := rapid.SliceOfN(rapid.Custom(drawFaultyLife), 1, 3).Draw(rt, "lives")
		if err := runLives(t, seed, lives, (*simdisk.Disk).Sync); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestAMissingFlushIsDetected tests that the tests above detect a missing flush.
func TestAMissingFlushIsDetected(t *testing.T) {
	draw := rapid.SliceOfN(rapid.Custom(drawLife), 1, 4)
	const most = 200
	for n := range most {
		if err := runLives(t, uint64(n), draw.Example(n),
			func(*simdisk.Disk, *os.File) error { return nil }); err != nil {
			t.Logf("found with example %d: %v", n, err)
			return
		}
	}
	t.Errorf("not found in %d runs", most)
}

// runLives runs lives that flush the log with flush, and a last one that only checks.
func runLives(t *testing.T, seed uint64, lives []life, flush func(*simdisk.Disk, *os.File) error) (err error) {
	dir := t.TempDir()
	synctest.Test(t, func(*testing.T) { err = runLivesIn(dir, seed, lives, flush) })
	return err
}

func runLivesIn(dir string, seed uint64, lives []life, flush func(*simdisk.Disk, *os.File) error) error {
	d, err := simdisk.New(dir, seed)
	if err != nil {
		return err
	}
	defer d.Close()
	var h history
	sync := func(f *os.File) error { return flush(d, f) }
	for n, l := range append(lives, life{Crash: simdisk.Power}) {
		err := l.run(d, filepath.Join(dir, "items.db"), sync, &h)
		if !h.opened && errors.Is(err, ErrCorrupt) {
			return nil // a failed write of the first page left a part of it, and nothing was stored yet
		}
		if err != nil {
			return fmt.Errorf("life %d: %w", n, err)
		}
		if err := d.Restart(); err != nil {
			return err
		}
	}
	return nil
}

// run runs one life. It starts with a check of the database after the last one.
func (l life) run(d *simdisk.Disk, path string, sync func(*os.File) error, h *history) error {
	began, reads := d.Calls(), d.Count(simdisk.Read)
	var died *history // the history at the crash; later failures are caused by it
	d.OnCrash(func(simdisk.Crash) { known := *h; died = &known })
	d.SetFaults(func(c simdisk.Call) simdisk.Fault {
		if c.Op == simdisk.Read {
			reads++
		} else if l.At > 0 && c.Number == began+l.At {
			return simdisk.Fault{Crash: l.Crash}
		}
		for _, f := range l.Faults {
			if f.Read && c.Op == simdisk.Read && f.At == reads || !f.Read && c.Op != simdisk.Read &&
				c.Number == began+f.At {
				h.evicted = h.evicted || f.Evict
				return simdisk.Fault{Err: f.Err, Evict: f.Evict}
			}
		}
		return simdisk.Fault{}
	})
	var left []func() error
	err := l.work(path, Options{Readers: 1, Sync: sync,
		LeftOpen: func(release func() error) { left = append(left, release) }}, h)
	d.SetFaults(nil)
	// A start or a read may fail because of the disk. The next start must not fail.
	if failed := errors.Is(err, ErrDisk) || errors.Is(err, ErrDiskFull) || errors.Is(err, ErrReadOnly); err != nil &&
		died == nil && (!failed || len(l.Faults) == 0) {
		return err
	}
	if died != nil {
		*h = *died
	}
	d.Crash(l.Crash)
	for _, release := range left {
		_ = release() // the process is gone
	}
	if l.Crash == simdisk.Power || h.evicted {
		h.alive, h.evicted = h.durable, false
	}
	return nil
}

func (l life) work(path string, opts Options, h *history) (err error) {
	ctx := context.Background()
	db, err := Open(ctx, path, items, opts)
	if err != nil {
		return err
	}
	h.opened = true
	if err := h.check(db); err != nil { // if the disk fails reads, the content is unknown
		return errors.Join(err, db.Close())
	}
	defer func() { err = errors.Join(err, h.close(db)) }()
	for _, a := range l.Acts {
		if a == reopens {
			if err := h.close(db); err != nil {
				return err
			}
			next, err := Open(ctx, path, items, opts)
			if err != nil {
				return err
			}
			db = next
			continue
		}
		if err := h.do(ctx, db, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return nil
}

// close closes the database. If that succeeds, everything is on the disk.
func (h *history) close(db *DB) error {
	err := db.Close()
	if err == nil {
		h.durable, h.alive = h.tried, h.tried
	} else {
		h.alive = h.durable // the kernel may have forgotten the rest
	}
	return err
}

func (h *history) do(ctx context.Context, db *DB, a action) error {
	var err error
	switch a {
	case writes:
		err = h.add(ctx, db.Write)
	case writesSecret:
		err = h.add(ctx, db.WriteSecret)
	case writesLazily:
		if err = h.add(ctx, db.WriteLazily); err == nil {
			h.alive = h.tried
		}
	case writesSoon:
		err = h.add(ctx, db.WriteShared)
	case flushes:
		err = db.Flush()
	case waits:
		time.Sleep(2 * shareTime)
		if err = db.writer.disk.writeError(); err == nil {
			h.alive = h.tried
		}
	case rests:
		time.Sleep(2 * lazyTime)
		if err = db.writer.disk.writeError(); err == nil {
			h.durable, h.alive = h.tried, h.tried
		}
	case reads:
		err = h.count(db, h.tried)
	}
	if err == nil && (a == writes || a == writesSecret) {
		h.alive = h.tried
	}
	if err == nil && (a == writes || a == writesSecret || a == flushes) && db.writer.disk.writeError() == nil {
		h.durable = h.tried
	}
	for try := 0; errors.Is(errors.Join(err, db.writer.disk.writeError()), ErrDiskFull) && try < 3; try++ {
		if err = db.RetryDisk(ctx); err == nil {
			h.durable, h.evicted = h.alive, false
		}
	}
	if errors.Is(err, ErrDisk) {
		h.alive = h.durable // the kernel may have forgotten the rest
	}
	return err
}

// add writes the next item. If the disk is full, it is not stored; if the disk failed, it may be.
func (h *history) add(ctx context.Context, write func(context.Context, func(*Tx) error) error) error {
	n := h.tried
	h.tried++
	err := write(ctx, func(tx *Tx) error {
		_, err := tx.Exec(insert, n, make([]byte, 100*(n%7)*(n%7)))
		return err
	})
	if errors.Is(err, ErrDiskFull) {
		h.tried = n
	}
	return err
}

// check checks the database after a crash, and updates the history to its content.
func (h *history) check(db *DB) error {
	word, err := One(context.Background(), db, Value[string], "PRAGMA integrity_check")
	if err != nil {
		return err
	}
	if word != "ok" {
		return integrityError(word)
	}
	n, err := One(context.Background(), db, Value[int], "SELECT count(*) FROM items")
	if err != nil {
		return err
	}
	if n < h.alive || n > h.tried {
		return fmt.Errorf("%d items, of %d that were written and %d that had to stay", n, h.tried, h.alive)
	}
	h.tried = n
	return h.count(db, n)
}

// count returns an error unless the first n items are stored.
func (h *history) count(db *DB, n int) error {
	found, err := One(context.Background(), db, Value[int],
		"SELECT count(*) FROM items WHERE CAST(name AS INTEGER) < ?", n)
	if err == nil && found != n {
		err = fmt.Errorf("%d of the first %d items", found, n)
	}
	return err
}

// TestOnlyDurableWritesWaitForASlowDisk tests that, while a flush takes an hour, reads and lazy writes continue
// and only durable writes wait.
func TestOnlyDurableWritesWaitForASlowDisk(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	synctest.Test(t, func(t *testing.T) {
		d, err := simdisk.New(dir, 1)
		must(t, err)
		defer d.Close()
		db, err := Open(ctx, filepath.Join(dir, "items.db"), items, Options{Sync: d.Sync})
		must(t, err)
		defer func() { must(t, db.Close()) }()
		must(t, put(ctx, db, "first", nil))
		d.SetFaults(func(c simdisk.Call) simdisk.Fault {
			if c.Op == simdisk.Sync {
				return simdisk.Fault{Delay: time.Hour}
			}
			return simdisk.Fault{}
		})
		began := time.Now()
		done := make(chan error)
		for _, name := range []string{"slow", "slower"} {
			go func() { done <- put(ctx, db, name, nil) }()
		}
		time.Sleep(time.Minute)
		must(t, db.WriteLazily(ctx, item("lazy")))
		same(t, "items", names(t, db), []string{"first", "lazy", "slow", "slower"})
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("a lazy write and a read took %v", took)
		}
		must(t, errors.Join(<-done, <-done))
		if took := time.Since(began); took < time.Hour {
			t.Errorf("what must be on the disk took %v", took)
		}
		d.SetFaults(nil)
	})
}
