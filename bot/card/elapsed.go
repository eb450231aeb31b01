package card

import "time"

// A tool's line shows how long the tool has been running. Each update is an edit, so the updates become rarer.
const (
	elapsedFirst = 30 * time.Second // earlier, users do not wonder
	elapsedLeast = 10 * time.Second // least time before another edit that is made anyway updates it
)

// timed reports whether a tool is running and its start is known.
func (t *toolLine) timed() bool { return t != nil && !t.ended() && t.held == "" && !t.began.IsZero() }

// elapse updates the running times of tools in the segments from one on. Earlier messages stay unchanged.
func (d *document) elapse(now time.Time, from int) {
	if d.running == 0 {
		return
	}
	for _, s := range d.segments[min(from, len(d.segments)):] {
		t := s.tool
		if !t.timed() {
			continue
		}
		if took := now.Sub(t.began); took >= elapsedLeast {
			t.elapsed = took.Truncate(time.Second)
		}
	}
}

// nextElapse returns when a line's running time alone is worth an edit: after 30 s, 1 min, 2 min, 4 min and so on. It
// returns false if no tool runs in the segments from one on.
func (d *document) nextElapse(from int) (next time.Time, ok bool) {
	if d.running == 0 {
		return time.Time{}, false
	}
	for _, s := range d.segments[min(from, len(d.segments)):] {
		t := s.tool
		if !t.timed() {
			continue
		}
		step := elapsedFirst
		for step <= t.elapsed {
			step *= 2
		}
		if at := t.began.Add(step); !ok || at.Before(next) {
			next, ok = at, true
		}
	}
	return next, ok
}
