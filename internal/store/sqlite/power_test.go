package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	simdisk "ductor/internal/sim/disk"
)

// act is one thing that a program does with a database.
type act string

const (
	writes       act = "write"
	writesLazily act = "write lazily"
	writesSoon   act = "write soon"
	flushes      act = "flush"
	writesSecret act = "write a secret"
	waits        act = "wait"
	reads        act = "read"
	reopens      act = "close and open"
)

// life is what a program does until a crash at a call of the disk, or after all it does.
type life struct {
	Acts  []act
	Crash simdisk.Crash
	At    int
}

func drawLife(t *rapid.T) life {
	// Transactions are small, and all that can be kept waiting is.
	acts := []act{writes, writesLazily, writesLazily, writesSoon, writesSoon, flushes, writesSecret, waits, reads, reopens}
	return life{
		Acts:  rapid.SliceOfN(rapid.SampledFrom(acts), 1, 20).Draw(t, "acts"),
		Crash: rapid.SampledFrom([]simdisk.Crash{simdisk.Kill, simdisk.Power}).Draw(t, "crash"),
		At:    rapid.IntRange(1, 60).Draw(t, "at"),
	}
}

// history is what was written in all lives: items 0 to n-1, one after the other.
type history struct {
	tried   int // items that were written, or whose write failed
	alive   int // of these, how many outlive the end of the process
	durable int // and how many outlive a power failure
}

// TestNothingAcknowledgedIsLostByACrash: after a crash at any call that reaches the disk, the database is whole, has everything
// that had to outlive the crash, and lost no write without all that were made after it.
func TestNothingAcknowledgedIsLostByACrash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		lives := rapid.SliceOfN(rapid.Custom(drawLife), 1, 4).Draw(rt, "lives")
		if err := liveAll(t, seed, lives, (*simdisk.Disk).Sync); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestALostFlushIsFoundByACrash: the test above finds a flush that does not happen.
func TestALostFlushIsFoundByACrash(t *testing.T) {
	draw := rapid.SliceOfN(rapid.Custom(drawLife), 1, 4)
	const most = 200
	for n := range most {
		if err := liveAll(t, uint64(n), draw.Example(n), func(*simdisk.Disk, *os.File) error { return nil }); err != nil {
			t.Logf("found with example %d: %v", n, err)
			return
		}
	}
	t.Errorf("not found in %d runs", most)
}

// liveAll lives lives that bring the log to the disk by flush, and another one that only looks.
func liveAll(t *testing.T, seed uint64, lives []life, flush func(*simdisk.Disk, *os.File) error) (err error) {
	dir := t.TempDir()
	synctest.Test(t, func(*testing.T) { err = liveIn(dir, seed, lives, flush) })
	return err
}

func liveIn(dir string, seed uint64, lives []life, flush func(*simdisk.Disk, *os.File) error) error {
	d, err := simdisk.New(dir, seed)
	if err != nil {
		return err
	}
	defer d.Close()
	var h history
	sync := func(f *os.File) error { return flush(d, f) }
	for n, l := range append(lives, life{Crash: simdisk.Power}) {
		if err := l.run(d, filepath.Join(dir, "items.db"), sync, &h); err != nil {
			return fmt.Errorf("life %d: %w", n, err)
		}
		if err := d.Restart(); err != nil {
			return err
		}
	}
	return nil
}

// run lives one life, which begins with a check of what the last one left.
func (l life) run(d *simdisk.Disk, path string, sync func(*os.File) error, h *history) error {
	began, dead := d.Calls(), false
	d.OnCrash(func(simdisk.Crash) { dead = true })
	d.SetFaults(func(c simdisk.Call) simdisk.Fault {
		if l.At > 0 && c.Number == began+l.At {
			return simdisk.Fault{Crash: l.Crash}
		}
		return simdisk.Fault{}
	})
	err := l.work(path, sync, h)
	d.SetFaults(nil)
	if err != nil && !dead {
		return err
	}
	d.Crash(l.Crash)
	if l.Crash == simdisk.Power {
		h.alive = h.durable
	}
	return nil
}

func (l life) work(path string, sync func(*os.File) error, h *history) (err error) {
	ctx := context.Background()
	release := func() error { return nil }
	open := func() (*DB, error) {
		return Open(ctx, path, items, Options{Readers: 1, Sync: sync, Left: func(f func() error) { release = f }})
	}
	db, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), release()) }()
	if err := h.check(db); err != nil {
		return err
	}
	for _, a := range l.Acts {
		if a == reopens {
			if err := db.Close(); err != nil {
				return err
			}
			h.durable, h.alive = h.tried, h.tried
			next, err := open()
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

func (h *history) do(ctx context.Context, db *DB, a act) error {
	add := func(write func(context.Context, func(*Tx) error) error) error {
		n := h.tried
		h.tried++
		return write(ctx, func(tx *Tx) error {
			_, err := tx.Exec(insert, n, make([]byte, 100*(n%7)*(n%7)))
			return err
		})
	}
	var err error
	switch a {
	case writes:
		if err = add(db.Write); err == nil {
			h.durable, h.alive = h.tried, h.tried
		}
	case writesSecret:
		if err = add(db.WriteSecret); err == nil {
			h.durable, h.alive = h.tried, h.tried
		}
	case writesLazily:
		if err = add(db.WriteLazily); err == nil {
			h.alive = h.tried
		}
	case writesSoon:
		err = add(db.WriteSoon)
	case flushes:
		if err = db.Flush(); err == nil {
			h.durable, h.alive = h.tried, h.tried
		}
	case waits:
		time.Sleep(2 * shareTime)
		if err = db.writer.disk.refusal(); err == nil {
			h.alive = h.tried
		}
	case reads:
		err = h.count(db, h.tried)
	}
	return err
}

// check looks at what a crash left, and goes on from there.
func (h *history) check(db *DB) error {
	word, err := One(context.Background(), db, Value[string], "PRAGMA integrity_check")
	if err != nil || word != "ok" {
		return fmt.Errorf("damaged: %s, %w", word, err)
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

// count looks whether the first n items are there.
func (h *history) count(db *DB, n int) error {
	found, err := One(context.Background(), db, Value[int], "SELECT count(*) FROM items WHERE CAST(name AS INTEGER) < ?", n)
	if err == nil && found != n {
		err = fmt.Errorf("%d of the first %d items", found, n)
	}
	return err
}
