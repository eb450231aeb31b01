package card

import "time"

// A tool's line shows how long the tool has been running. Each update is an edit, so the time between two updates
// grows.
const (
	elapsedFirst = 30 * time.Second // earlier, users do not wonder
	elapsedLeast = 10 * time.Second // least time before another edit that is made anyway updates it
)

// stopwatch measures how long a tool runs. The time that it waits for a user does not count.
type stopwatch struct {
	since  time.Time // zero if unknown
	shown  time.Duration
	waited bool // the tool waited for a user until since
}

// restart counts from now on, because a wait for a user has ended.
func (s *stopwatch) restart(now time.Time) { s.since, s.waited = now, true }

// update sets the running time that is shown.
func (s *stopwatch) update(now time.Time) {
	if took := now.Sub(s.since); took >= elapsedLeast {
		s.shown = took.Truncate(time.Second)
	}
}

// next returns when the running time is worth an edit, even if nothing else changed: after 30 s, 1 min, 2 min, 4 min
// and so on.
func (s *stopwatch) next() time.Time {
	step := elapsedFirst
	for step <= s.shown {
		step *= 2
	}
	return s.since.Add(step)
}

// withoutWait subtracts the time that a tool waited for a user from the duration that the agent reports.
func (s *stopwatch) withoutWait(reported time.Duration, now time.Time) time.Duration {
	if s.waited {
		return min(reported, max(now.Sub(s.since), 0))
	}
	return reported
}

// timed reports whether a tool is running and its start is known.
func (t *toolLine) timed() bool {
	return t != nil && !t.ended() && t.held == "" && !t.ran.since.IsZero()
}

// elapse updates the running times of tools in the segments from one on. Earlier messages stay unchanged.
func (d *document) elapse(now time.Time, from int) {
	if d.running == 0 {
		return
	}
	for _, s := range d.segments[min(from, len(d.segments)):] {
		if s.tool.timed() {
			s.tool.ran.update(now)
		}
	}
}

// nextElapse returns when the running time of a line alone is worth an edit. It returns false if no tool runs in the
// segments from one on.
func (d *document) nextElapse(from int) (next time.Time, ok bool) {
	if d.running == 0 {
		return time.Time{}, false
	}
	for _, s := range d.segments[min(from, len(d.segments)):] {
		if !s.tool.timed() {
			continue
		}
		if at := s.tool.ran.next(); !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}
