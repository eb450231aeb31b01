package judge

import (
	"slices"
	"time"

	"ductor/test/ordeal/scenario"
)

// This file finds the writes that a power failure or a failing disk may have undone.

// failedFlush reports whether a flush failed; then the same data may be lost as in a power failure.
func (f *facts) failedFlush() bool {
	return slices.ContainsFunc(f.Scenario.Steps, func(s scenario.Step) bool {
		d, ok := s.(scenario.Disk)
		return ok && (d.Fault == scenario.DiskFsync || d.Fault == scenario.DiskEIO)
	})
}

// fullDisk returns the longest time for which the disk was full. During that time ductor cannot store the ids of its
// messages.
func (f *facts) fullDisk() (most time.Duration) {
	for _, step := range f.Scenario.Steps {
		if d, ok := step.(scenario.Disk); ok && d.Fault == scenario.DiskFull {
			most = max(most, d.For)
		}
	}
	return most
}

// powerWindow returns the period before a power failure in which a turn may have started that runs again afterwards.
// docs/invariants.md allows one second. A slow or failing disk extends it.
func (f *facts) powerWindow() time.Duration {
	if slices.ContainsFunc(f.Scenario.Steps, func(s scenario.Step) bool { _, disk := s.(scenario.Disk); return disk }) {
		return 2 * time.Minute
	}
	return lazyWindow
}

// tookBack reports whether a power failure or a failed flush before this time undid an event just before it, so that
// the prompt waited again.
func (f *facts) tookBack(e AgentEvent, before time.Time) bool {
	return slices.ContainsFunc(f.Stops, func(s Stop) bool {
		window := f.lossWindow(s)
		return !s.At.Before(e.At) && s.At.Sub(e.At) < window && !s.At.After(before)
	})
}

// lossWindow returns the period before an end of ductor whose writes may be lost. It is zero if none may be lost.
func (f *facts) lossWindow(s Stop) time.Duration {
	switch {
	case s.How == scenario.Power:
		return f.powerWindow()
	case f.failedFlush():
		return failedWindow
	}
	return 0
}

// lazyWindow is how long an unflushed write may wait for the disk, with a margin.
const lazyWindow = 3 * time.Second

// failedWindow is how long before the end of a ductor whose flush failed its data may be lost. It first lets go of its
// work.
const failedWindow = lazyWindow + 15*time.Second

// beganJustBefore reports whether the last run of a prompt before a power failure began within window before it.
func (f *facts) beganJustBefore(token scenario.Token, at time.Time, window time.Duration) bool {
	var began time.Time
	for _, e := range f.events[token] {
		if !e.At.After(at) && (began.IsZero() || e.What == Got) {
			began = e.At
		}
	}
	return !began.IsZero() && at.Sub(began) < window
}
