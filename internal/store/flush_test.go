package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/internal/store/sqlite"
	"ductor/orchestrator"
)

// withCounting calls f with a new database, and with the number of flushes of its log. f runs in a bubble: on a busy
// machine, a real timer could flush lazy writes while f still runs.
func withCounting(t *testing.T, f func(t *testing.T, db *DB, n *atomic.Int64)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ductor.db") // outside of the bubble, which ends before the directory is removed
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		db, err := Open(context.Background(), path, Options{
			Now: func() time.Time { return noon },
			SQLite: sqlite.Options{Sync: func(f *os.File) error {
				if strings.HasSuffix(f.Name(), "-wal") { // the first flush also syncs the directory
					n.Add(1)
				}
				return syscall.Fdatasync(int(f.Fd()))
			}},
		})
		must(t, err)
		defer func() { must(t, db.Close()) }()
		f(t, db, &n)
	})
}

func TestFlushIncludesEarlierWrites(t *testing.T) {
	withCounting(t, func(t *testing.T, db *DB, n *atomic.Int64) {
		get[[]orchestrator.Update](t)(db.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 1, Raw: []byte("u")}}))
		if n.Load() != 0 {
			t.Error("updates wait for the disk before they are dispatched")
		}
		must(t, db.Flush(t.Context()))
		must(t, db.Flush(t.Context())) // nothing left to flush
		if n.Load() != 1 {
			t.Fatalf("%d flushes, want 1", n.Load())
		}
		// If a power failure loses a queued turn, its update is pending and ductor enqueues the turn again. So it need
		// not wait.
		turn := newTurn("t1", 1)
		must(t, db.EnqueueTurn(t.Context(), turn))
		if n.Load() != 1 {
			t.Error("queueing a turn waits for the disk")
		}
		newSession(t, db, "s1", chatA, noon)
		turn.Session, turn.Started = "s1", noon
		before := n.Load()
		if ok, err := db.StartTurn(t.Context(), turn, cli.Start{Run: "r"}); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if n.Load() != before {
			t.Error("a prompt waits for the disk")
		}
		must(t, db.Flush(t.Context()))
		if n.Load() != before+1 {
			t.Errorf("%d flushes, want 1", n.Load()-before)
		}
	})
}

// ductor shows a request immediately. A decision by a rule is on the disk, with its audit entry, before the agent gets
// it.
func TestOnlyADecidedApprovalWaitsForTheDisk(t *testing.T) {
	withCounting(t, func(t *testing.T, db *DB, n *atomic.Int64) {
		asked := newApproval("a", "t", "1")
		opened(t, db, asked, "d")
		if n.Load() != 0 {
			t.Error("a request waits for the disk before it is shown")
		}
		ruled := newApproval("b", "t", "2")
		ruled.State, ruled.Ruled, ruled.Decided = orchestrator.ApprovalAllowed, "rule", noon
		opened(t, db, ruled, "e")
		if n.Load() != 1 {
			t.Errorf("%d flushes, want 1", n.Load())
		}
	})
}

func TestCloseFlushesLazyWrites(t *testing.T) {
	withCounting(t, func(t *testing.T, db *DB, n *atomic.Int64) {
		get[[]orchestrator.Update](t)(db.AppendUpdates(t.Context(), []orchestrator.Update{{ID: 1, Raw: []byte("u")}}))
		must(t, db.EnqueueTurn(t.Context(), newTurn("t1", 1)))
		must(t, db.Close())
		if n.Load() != 1 {
			t.Errorf("%d flushes", n.Load())
		}
	})
}
