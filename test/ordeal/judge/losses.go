package judge

import (
	"slices"
	"time"

	"ductor/test/ordeal/scenario"
)

// This file finds out which writes to the disk may have been lost in a power failure or because of a failing disk.

// failedFlush reports whether a flush to the disk failed. Then the same data may be lost as in a power failure.
func (f *facts) failedFlush() bool {
	return slices.ContainsFunc(f.Scenario.Steps, func(s scenario.Step) bool {
		d, ok := s.(scenario.Disk)
		return ok && (d.Fault == scenario.DiskFsync || d.Fault == scenario.DiskEIO)
	})
}

// fullDisk returns the longest time for which the disk was full. In this time ductor could not store the IDs of its
// messages.
func (f *facts) fullDisk() (most time.Duration) {
	for _, step := range f.Scenario.Steps {
		if d, ok := step.(scenario.Disk); ok && d.Fault == scenario.DiskFull {
			most = max(most, d.For)
		}
	}
	return most
}

// powerWindow returns a time before a power failure. If a turn started in it, the turn may run again.
// docs/invariants.md allows one second, and more if the disk is slow or fails.
func (f *facts) powerWindow() time.Duration {
	if slices.ContainsFunc(f.Scenario.Steps, func(s scenario.Step) bool { _, disk := s.(scenario.Disk); return disk }) {
		return 2 * time.Minute
	}
	return lazyWindow
}

// tookBack reports whether an event may have been lost in a power failure or by a failed flush before this time, so
// that the prompt was queued again.
func (f *facts) tookBack(e AgentEvent, before time.Time) bool {
	return slices.ContainsFunc(f.Stops, func(s Stop) bool {
		window := f.powerWindow()
		switch {
		case s.How == scenario.Power:
		case f.failedFlush():
			window = failedWindow
		default:
			return false
		}
		return !s.At.Before(e.At) && s.At.Sub(e.At) < window && !s.At.After(before)
	})
}

// lazyWindow limits how long ductor may keep data in memory before it flushes the data to the disk. It includes a
// margin.
const lazyWindow = 3 * time.Second

// failedWindow is a time before the end of a ductor whose flush has failed. Data from this time may be lost, because
// ductor takes some time to end.
const failedWindow = lazyWindow + 15*time.Second

// beganJustBefore reports whether the last run of a prompt began at most window before a power failure.
func (f *facts) beganJustBefore(token scenario.Token, at time.Time, window time.Duration) bool {
	var began time.Time
	for _, e := range f.events[token] {
		if !e.At.After(at) && (began.IsZero() || e.What == Got) {
			began = e.At
		}
	}
	return !began.IsZero() && at.Sub(began) < window
}
