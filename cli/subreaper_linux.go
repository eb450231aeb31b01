package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// BecomeSubreaper makes orphans of agents children of this process, so that Stop finds them also when
// they left group and session. Call it once, from cmd, for the one Host there is, and let ReapOrphans run.
func (h *Host) BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// ReapOrphans takes the exit status of adopted orphans that died by themselves, every so often until ctx
// is done. It leaves alone what Host started, and every child in our own session: others started those
// and wait for them.
func (h *Host) ReapOrphans(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.reapOnce()
		}
	}
}

// reapOnce returns how many orphans it found dead. The order matters: a program we start is being
// started, or in programs, or its status was taken, at any moment after it appears in the list.
func (h *Host) reapOnce() int {
	procs, err := allProcs()
	self, ok := readProc(os.Getpid())
	if err != nil || !ok {
		return 0 // the next round looks again
	}
	reaped := 0
	for _, p := range procs {
		if p.dead() && p.parent == self.pid && p.session != self.session && !h.owns(p.pid) {
			reap(p.procID)
			reaped++
		}
	}
	return reaped
}

func (h *Host) owns(pid int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.starting > 0 || h.programs[pid]
}
