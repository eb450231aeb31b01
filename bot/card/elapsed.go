package card

import "time"

// A tool's line shows how long the tool has been running. Each update costs an edit, so the time between updates
// grows.
const (
	elapsedFirst = 30 * time.Second // users do not wonder before that
	elapsedLeast = 10 * time.Second // minimum time before an edit for another reason also updates the running time
)

// stopwatch measures how long a tool runs, without the time that the tool waits for a user.
type stopwatch struct {
	since  time.Time // zero if unknown
	shown  time.Duration
	waited bool // the tool waited for a user before since
}

// restart starts counting now, after a wait for a user.
func (s *stopwatch) restart(now time.Time) { s.since, s.waited = now, true }

// update sets the running time that the line shows.
func (s *stopwatch) update(now time.Time) {
	if took := now.Sub(s.since); took >= elapsedLeast {
		s.shown = took.Truncate(time.Second)
	}
}

// next returns when the running time alone justifies an edit: after 30 s, 1 min, 2 min, 4 min and so on.
func (s *stopwatch) next() time.Time {
	step := elapsedFirst
	for step <= s.shown {
		step *= 2
	}
	return s.since.Add(step)
}

// withoutWait subtracts a tool's wait for a user from the duration that the agent reports.
func (s *stopwatch) withoutWait(reported time.Duration, now time.Time) time.Duration {
	if s.waited {
		return min(reported, max(now.Sub(s.since), 0))
	}
	return reported
}

// timed reports whether the tool is running and its start time is known.
func (t *toolLine) timed() bool {
	return t != nil && !t.ended() && t.held == "" && !t.ran.since.IsZero()
}

// elapse updates the running times of tools in all segments starting with index from. It does not change earlier
// messages.
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

// nextElapse returns when a running time alone justifies an edit. It returns false if no tool runs in the segments
// starting with index from.
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
