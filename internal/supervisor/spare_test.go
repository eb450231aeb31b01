package supervisor

import (
	"context"
	"ductor/internal/proctree"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// spares waits until a root has its spares.
func spares(t *testing.T, root *Root) []*starting {
	t.Helper()
	eventually(t, "spares", func() bool { return !root.pool.missing() })
	root.pool.mu.Lock()
	defer root.pool.mu.Unlock()
	return append([]*starting(nil), root.pool.spares...)
}

func TestSpareIsUsedAndReplaced(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{Spares: 1})
	spare := spares(t, root)[0]
	run := start(t, root, sh(`cat`))
	if run.Info().Supervisor != spare.pid {
		t.Errorf("supervisor %d, the spare was %d", run.Info().Supervisor, spare.pid)
	}
	if next := spares(t, root)[0]; next.pid == spare.pid {
		t.Error("the spare is still in the list")
	}
}

func TestSpareThatDiedIsPassedOver(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{Spares: 1})
	spare := spares(t, root)[0]
	kill9(t, spare.pid)
	id := proctree.ID{PID: spare.pid}
	eventually(t, "it is dead", func() bool { return !id.Running() })
	run := start(t, root, sh(`echo alive`))
	if got := readAll(t, run.Stdout()); got != "alive\n" {
		t.Errorf("%q", got)
	}
}

func TestClosedRootLeavesNoSpareAndNoStaging(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{Spares: 2})
	var ids []proctree.ID
	for _, spare := range spares(t, root) {
		id, _ := proctree.LookUp(spare.pid)
		ids = append(ids, id)
	}
	if err := root.Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		eventually(t, "the spare leaves", func() bool { return !id.Running() })
	}
	eventually(t, "the staging directories are gone", func() bool {
		entries, err := os.ReadDir(root.dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries) == 0
	})
	if _, err := root.Start(t.Context(), sh("true")); err == nil {
		t.Error("a closed root starts agents")
	}
}

// A supervisor that does not answer is not waited for longer than the caller wants.
func TestStartIsBoundByItsContext(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{Command: []string{"/bin/sh", "-c", "exec sleep 600"}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := root.Start(ctx, sh("true")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	eventually(t, "the mute supervisor is gone", func() bool { return root.pool.reap() == 0 })
}

func TestSupervisorThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{Command: []string{"/no/such/ductor"}, Spares: 1})
	if _, err := root.Start(t.Context(), sh("true")); err == nil || !strings.Contains(err.Error(), "/no/such/ductor") {
		t.Errorf("%v", err)
	}
	other := openRoot(t, Options{Command: []string{"/bin/true"}})
	if _, err := other.Start(t.Context(), sh("true")); !errors.Is(err, ErrGone) {
		t.Errorf("%v", err)
	}
}
