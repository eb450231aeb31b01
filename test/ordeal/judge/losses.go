package judge

import (
	"slices"
	"time"

	"ductor/test/ordeal/scenario"
)

// This file determines which writes to the disk may have been lost in a power failure or because of a failing disk.

// lazyWindow is the maximum time between a write of ductor and the flush of the write to the disk, plus a margin. If
// the power or the flush fails, ductor may lose all writes within this time.
const lazyWindow = 3 * time.Second

// sharedWindow is the maximum time between a write and the end of the write's transaction, plus a margin. If the disk
// reports an error in this time, SQLite undoes the whole transaction.
const sharedWindow = 100 * time.Millisecond

// exitTime is the maximum time between an error of the disk and the end of ductor, plus a margin. In this time, ductor
// cannot store anything.
const exitTime = 18 * time.Second

// slowWindow replaces lazyWindow if the disk fails or is slow.
const slowWindow = 2 * time.Minute

// lostSince returns the time since which ductor may have lost its writes because of the stop s. It returns false if
// ductor lost no write.
func (f *facts) lostSince(s Stop) (since time.Time, lost bool) {
	// When ductor starts, it flushes the writes of the previous process. If this flush fails, the writes may be lost.
	if s.How == scenario.Power || f.diskFailedIn(s.At, s.Up, scenario.DiskFsync) {
		return s.At.Add(-f.powerWindow(s)), true
	}
	failed, ok := f.failedBefore(s)
	switch {
	case !ok:
		return time.Time{}, false
	case failed.Fault == scenario.DiskFsync: // a failed flush may lose all writes since the previous flush
		return failed.At.Add(-lazyWindow), true
	}
	return failed.At.Add(-sharedWindow), true
}

// failedBefore returns the first error of the disk that may have caused the given stop.
func (f *facts) failedBefore(s Stop) (DiskFailure, bool) {
	for _, d := range f.Faults.Disk {
		ends := d.Fault == scenario.DiskFsync || d.Fault == scenario.DiskEIO
		if ends && !d.At.After(s.At) && s.At.Sub(d.At) < exitTime {
			return d, true
		}
	}
	return DiskFailure{}, false
}

// wasLost reports whether ductor may have lost its record of an event because of the stop s. The event happened at the
// time `at`. ductor wrote the record at most `late` after the event.
func (f *facts) wasLost(s Stop, at time.Time, late time.Duration) bool {
	since, lost := f.lostSince(s)
	return lost && !at.Add(late).Before(since) && !at.After(s.At)
}

// fullDisk returns the longest time for which the disk was full. During this time, ductor could not store the IDs of
// its messages.
func (f *facts) fullDisk() (most time.Duration) {
	for _, step := range f.Scenario.Steps {
		if d, ok := step.(scenario.Disk); ok && d.Fault == scenario.DiskFull {
			most = max(most, d.For)
		}
	}
	return most
}

// powerWindow returns the maximum time between a write and a power failure that undoes the write. If ductor wrote that
// a turn started, and the power failure undoes this write, the turn runs again. docs/invariants.md allows one second,
// and more if the disk is slow or fails.
func (f *facts) powerWindow(s Stop) time.Duration {
	if f.diskFailedIn(s.At.Add(-slowWindow), s.At) {
		return slowWindow
	}
	return lazyWindow
}

// diskFailedIn reports whether the disk may have failed or been slow in a period. If Faults.Disk is nil, the times of
// the faults are unknown. diskFailedIn then returns true if the scenario contains a fault of the disk.
func (f *facts) diskFailedIn(from, to time.Time, faults ...scenario.DiskFault) bool {
	isOne := func(fault scenario.DiskFault) bool { return len(faults) == 0 || slices.Contains(faults, fault) }
	if f.Faults.Disk == nil {
		return slices.ContainsFunc(f.Scenario.Steps, func(s scenario.Step) bool {
			d, ok := s.(scenario.Disk)
			return ok && isOne(d.Fault)
		})
	}
	return slices.ContainsFunc(f.Faults.Disk, func(d DiskFailure) bool {
		return isOne(d.Fault) && !d.At.Before(from) && !d.At.After(to)
	})
}

// tookBack reports whether ductor lost its record of an event of a prompt when it stopped. After such a loss, the prompt
// is in the queue again.
func (f *facts) tookBack(e AgentEvent) bool {
	return slices.ContainsFunc(f.Stops, func(s Stop) bool { return f.wasLost(s, e.At, 0) })
}

// lostBegin reports whether ductor may have lost the record that a prompt started to run, because of the stop s. If the
// prompt started several times, lostBegin checks the latest start before s.
func (f *facts) lostBegin(token scenario.Token, s Stop) bool {
	var began time.Time
	for _, e := range f.events[token] {
		if !e.At.After(s.At) && (began.IsZero() || e.What == Got) {
			began = e.At
		}
	}
	return !began.IsZero() && f.wasLost(s, began, 0)
}
