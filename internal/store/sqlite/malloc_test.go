package sqlite

import (
	"context"
	"database/sql"
	"os"
	"regexp"
	"strconv"
	"testing"

	simdisk "ductor/internal/sim/disk"
)

// SQLite would lock a mutex for each allocation to count its memory.
func TestSQLiteDoesNotCountItsMemory(t *testing.T) {
	must(t, put(t.Context(), newDB(t), "one", nil))
	if counted := simdisk.CountedMemory(); counted != 0 {
		t.Errorf("SQLite has counted %d bytes", counted)
	}
}

// TestReleasedMemoryReturnsToTheKernel fills the writer's cache in an open shared transaction. The memory must become
// smaller, and the transaction must survive.
func TestReleasedMemoryReturnsToTheKernel(t *testing.T) {
	ctx := t.Context()
	db := newDB(t)
	const items, size = 64, 64 << 10 // 4 MB, twice the writer's cache
	for i := range items {
		must(t, put(ctx, db, strconv.Itoa(i), make([]byte, size)))
	}
	must(t, db.WriteShared(ctx, func(t *Tx) error { _, err := t.Exec(insert, "shared", nil); return err }))
	before := heapOfC(t)
	must(t, db.ReleaseMemory(ctx))
	if after := heapOfC(t); before-after < 1<<10 {
		t.Errorf("the memory of C went from %d to %d kB", before, after)
	}
	must(t, db.CommitShared(ctx))
	if found := len(names(t, db)); found != items+1 {
		t.Errorf("%d of %d items are left", found, items+1)
	}
}

// TestReleasedReadersAreReplacedByOne releases memory while three readers are open, and one of them is in use.
func TestReleasedReadersAreReplacedByOne(t *testing.T) {
	ctx := t.Context()
	db := newDB(t)
	must(t, put(ctx, db, "one", nil))
	names(t, db) // prepares a statement
	var conns []*sql.Conn
	for range 3 {
		conn, err := db.reader.pool.Conn(ctx)
		must(t, err)
		conns = append(conns, conn)
	}
	must(t, conns[0].Close())
	must(t, conns[1].Close())
	must(t, db.ReleaseMemory(ctx))
	if open := db.reader.pool.Stats().OpenConnections; open != 2 {
		t.Errorf("%d readers are open; one in use and a new one were expected", open)
	}
	must(t, conns[2].PingContext(ctx))
	must(t, conns[2].Close())
	must(t, put(ctx, db, "two", nil))
	if found := names(t, db); len(found) != 2 {
		t.Errorf("found %q", found)
	}
}

func TestMemoryOfAClosedDatabaseIsNotReleased(t *testing.T) {
	db := newDB(t)
	must(t, db.Close())
	if err := db.ReleaseMemory(context.Background()); err == nil {
		t.Error("a closed database released memory")
	}
}

// heapOfC returns the size in kB of the memory that C uses for small allocations.
func heapOfC(t *testing.T) int {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	must(t, err)
	found := regexp.MustCompile(`(?s)\[heap\]\n.*?\nRss: +(\d+) kB`).FindSubmatch(smaps)
	if found == nil {
		t.Fatal("this process has no heap of C")
	}
	n, err := strconv.Atoi(string(found[1]))
	must(t, err)
	return n
}
