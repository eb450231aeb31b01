// Package retry repeats writes that failed because the disk was full, and messages that could not be delivered.
package retry

import (
	"context"
	"log/slog"
	"time"

	"ductor/orchestrator"
)

// Retrier repeats calls until they succeed.
type Retrier struct {
	Disk  orchestrator.Disk   // the disk of the store; if nil, a failed call is only repeated after a pause
	Pause time.Duration       // the pause after the first failure; it doubles with each failure, up to longestPause
	Life  context.Context     // when it is done, calls are not repeated any more
	Spawn func(f func()) bool // runs f in the background, or returns false if ductor is ending
}

const longestPause = 5 * time.Minute

// Record calls write and returns its error. After an error, Record calls write again in the background, until write
// succeeds or ductor ends. The returned channel receives true if write has succeeded, or false if ductor ended first.
func (r Retrier) Record(ctx context.Context, log *slog.Logger, write func(context.Context) error) (<-chan bool, error) {
	done := make(chan bool, 1)
	err := write(ctx)
	retry := func() {
		done <- r.UntilDone(log, "not-recorded", func() error { return write(ctx) })
	}
	if err == nil || !r.Spawn(retry) {
		done <- err == nil
	}
	return done, err
}

// Recorded returns the channel that Record returns after a successful write.
func Recorded() <-chan bool {
	done := make(chan bool, 1)
	done <- true
	return done
}

// UntilDone calls f until it succeeds. It returns false if ductor ends before that.
func (r Retrier) UntilDone(log *slog.Logger, trouble string, f func() error) bool {
	for pause := r.Pause; ; pause = min(2*pause, longestPause) {
		_, diskChanged := r.DiskState()
		err := f()
		if err == nil {
			return true
		}
		log := log.With("err", err)
		again := time.NewTimer(pause)
		select {
		case <-again.C:
			log.Warn(trouble+"; it is tried again now", "after", pause)
		case <-diskChanged:
			again.Stop()
		case <-r.Life.Done():
			again.Stop()
			log.Warn(trouble + "; it is tried again after the next start")
			return false
		}
	}
}

// DiskState returns the state of the disk, and a channel that is closed when the state changes.
func (r Retrier) DiskState() (orchestrator.DiskState, <-chan struct{}) {
	if r.Disk == nil {
		return orchestrator.DiskWorks, nil
	}
	state, changed := r.Disk.Disk()
	return state, changed.Done()
}

// DiskFull returns ErrDiskFull if the disk is full, and otherwise nil.
func (r Retrier) DiskFull() error {
	if state, _ := r.DiskState(); state == orchestrator.DiskFull {
		return orchestrator.ErrDiskFull
	}
	return nil
}

// AwaitDisk waits until the disk is not full. It returns false if ctx is done before that, or if Disk is nil.
func (r Retrier) AwaitDisk(ctx context.Context) bool {
	state, changed := r.DiskState()
	if changed == nil || state != orchestrator.DiskFull {
		return changed != nil
	}
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}
