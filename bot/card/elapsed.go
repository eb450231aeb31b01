package card

import "time"

// The line of a running tool shows how long the tool has been running. Each update costs an edit, so updates become
// less frequent over time.
const (
	elapsedFirst = 30 * time.Second // running time at which ductor first edits the message only to show this time
	elapsedLeast = 10 * time.Second // minimum running time that the line shows
)

// stopwatch measures how long a tool runs. It does not count the time in which the tool waits for a user's approval.
type stopwatch struct {
	since  time.Time // start of the measurement; zero if unknown
	shown  time.Duration
	waited bool // true if the measurement began after a wait for a user
}

// restart starts the measurement again after a wait for a user.
func (s *stopwatch) restart(now time.Time) { s.since, s.waited = now, true }

func (s *stopwatch) update(now time.Time) {
	if took := now.Sub(s.since); took >= elapsedLeast {
		s.shown = took.Truncate(time.Second)
	}
}

// next returns the time at which the running time must be updated, even if the message is otherwise unchanged: 30 s,
// 1 min, 2 min, 4 min, and so on after the start.
func (s *stopwatch) next() time.Time {
	step := elapsedFirst
	for step <= s.shown {
		step *= 2
	}
	return s.since.Add(step)
}

// withoutWait returns the duration that the agent reported, without the time in which the tool waited for a user.
func (s *stopwatch) withoutWait(reported time.Duration, now time.Time) time.Duration {
	if s.waited {
		return min(reported, max(now.Sub(s.since), 0))
	}
	return reported
}

func (t *toolLine) timed() bool {
	return t != nil && !t.ended() && t.held == "" && !t.ran.since.IsZero()
}

// elapse updates the running times of the tools in d.segments[first:]. Earlier segments belong to messages that should
// not change any more.
func (d *document) elapse(now time.Time, first int) {
	if d.running == 0 {
		return
	}
	for _, s := range d.segments[min(first, len(d.segments)):] {
		if s.tool.timed() {
			s.tool.ran.update(now)
		}
	}
}

// nextElapse returns the time at which a running time must be updated, even if the message is otherwise unchanged. It
// considers only the tools in d.segments[first:], and returns false if none of them is running.
func (d *document) nextElapse(first int) (next time.Time, ok bool) {
	if d.running == 0 {
		return time.Time{}, false
	}
	for _, s := range d.segments[min(first, len(d.segments)):] {
		if !s.tool.timed() {
			continue
		}
		if at := s.tool.ran.next(); !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}
