package store

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// openCounting opens a new database and counts the flushes of its log.
func openCounting(t *testing.T) (*DB, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "ductor.db"), Options{
		Now: func() time.Time { return noon },
		SQLite: sqlite.Options{Sync: func(f *os.File) error {
			if strings.HasSuffix(f.Name(), "-wal") { // the first flush also syncs the directory
				n.Add(1)
			}
			return syscall.Fdatasync(int(f.Fd()))
		}},
	})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db, &n
}

func TestFlushIncludesEarlierWrites(t *testing.T) {
	ctx := t.Context()
	db, n := openCounting(t)
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1, Raw: []byte("u")}}))
	if n.Load() != 0 {
		t.Error("updates wait for the disk before they are dispatched")
	}
	must(t, db.Flush(ctx))
	must(t, db.Flush(ctx)) // nothing left to flush
	if n.Load() != 1 {
		t.Fatalf("%d flushes, want 1", n.Load())
	}
	// If a power failure loses a queued turn, its update is pending and ductor enqueues the turn again. So it need not
	// wait.
	turn := newTurn("t1", 1)
	must(t, db.EnqueueTurn(ctx, turn))
	if n.Load() != 1 {
		t.Error("queueing a turn waits for the disk")
	}
	newSession(t, db, "s1", chatA, noon)
	turn.Session, turn.Started = "s1", noon
	before := n.Load()
	if ok, err := db.StartTurn(ctx, turn, cli.Start{Run: "r"}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if n.Load() != before {
		t.Error("a prompt waits for the disk")
	}
	must(t, db.Flush(ctx))
	if n.Load() != before+1 {
		t.Errorf("%d flushes, want 1", n.Load()-before)
	}
}

// ductor shows a request immediately. A decision by a rule is on the disk, with its audit entry, before the agent gets
// it.
func TestOnlyADecidedApprovalWaitsForTheDisk(t *testing.T) {
	ctx := t.Context()
	db, n := openCounting(t)
	asked := newApproval("a", "t", "1")
	get[orchestrator.Approval](t)(db.OpenApproval(ctx, asked, "d"))
	if n.Load() != 0 {
		t.Error("a request waits for the disk before it is shown")
	}
	ruled := newApproval("b", "t", "2")
	ruled.State, ruled.Ruled, ruled.Decided = orchestrator.ApprovalAllowed, "rule", noon
	get[orchestrator.Approval](t)(db.OpenApproval(ctx, ruled, "e"))
	if n.Load() != 1 {
		t.Errorf("%d flushes, want 1", n.Load())
	}
}

func TestCloseFlushesLazyWrites(t *testing.T) {
	ctx := t.Context()
	db, n := openCounting(t)
	get[[]orchestrator.Update](t)(db.AppendUpdates(ctx, []orchestrator.Update{{ID: 1, Raw: []byte("u")}}))
	must(t, db.EnqueueTurn(ctx, newTurn("t1", 1)))
	must(t, db.Close())
	if n.Load() != 1 {
		t.Errorf("%d flushes", n.Load())
	}
}
