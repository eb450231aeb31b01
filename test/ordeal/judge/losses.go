package judge

import (
	"slices"
	"time"

	"ductor/test/ordeal/scenario"
)

// This file determines which writes to the disk may have been lost in a power failure or because of a failing disk.

// lazyWindow is how long an unflushed write may wait for the disk, with a margin.
const lazyWindow = 3 * time.Second

// sharedWindow is the maximum time from a write until its transaction ends, with a margin. An error of the disk in this
// time undoes the write, because it undoes the whole transaction.
const sharedWindow = 100 * time.Millisecond

// letGo is the maximum time from an error of the disk until ductor ends, with a margin. In this time, ductor cannot
// store anything.
const letGo = 18 * time.Second

// slowWindow is how long an unflushed write may wait for a disk that fails or is slow, with a margin.
const slowWindow = 2 * time.Minute

// lostSince returns the start of the period whose writes may be lost because of a stop of ductor. It returns false if
// no write is lost.
func (f *facts) lostSince(s Stop) (since time.Time, lost bool) {
	// When ductor starts, it flushes the writes that the previous process left. If that fails, they may be lost.
	if s.How == scenario.Power || f.diskFailedIn(s.At, s.Up, scenario.DiskFsync) {
		return s.At.Add(-f.powerWindow(s)), true
	}
	failed, ok := f.failedBefore(s)
	switch {
	case !ok:
		return time.Time{}, false
	case failed.Fault == scenario.DiskFsync: // a failed flush also loses earlier writes
		return failed.At.Add(-lazyWindow), true
	}
	return failed.At.Add(-sharedWindow), true
}

// failedBefore returns the first error of the disk that may have caused the given stop.
func (f *facts) failedBefore(s Stop) (DiskFailure, bool) {
	for _, d := range f.Faults.Disk {
		ends := d.Fault == scenario.DiskFsync || d.Fault == scenario.DiskEIO
		if ends && !d.At.After(s.At) && s.At.Sub(d.At) < letGo {
			return d, true
		}
	}
	return DiskFailure{}, false
}

// wasLost reports whether a stop undid the record of an event. The event happened at the time `at`. ductor may have
// written the record with a delay of at most `late`.
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

// diskFailedIn reports whether the disk failed or was slow in a period. If the world cannot observe its disk, every
// fault of the scenario may have happened in the period.
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

// tookBack reports whether ductor lost the record of an event when it stopped. The prompt then waits again.
func (f *facts) tookBack(e AgentEvent) bool {
	return slices.ContainsFunc(f.Stops, func(s Stop) bool { return f.wasLost(s, e.At, 0) })
}

// lostBegin reports whether ductor lost the record of a run's start when it stopped. The run is the latest run of the
// prompt before the stop.
func (f *facts) lostBegin(token scenario.Token, s Stop) bool {
	var began time.Time
	for _, e := range f.events[token] {
		if !e.At.After(s.At) && (began.IsZero() || e.What == Got) {
			began = e.At
		}
	}
	return !began.IsZero() && f.wasLost(s, began, 0)
}
