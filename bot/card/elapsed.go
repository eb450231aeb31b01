package card

import "time"

// How long a tool runs is said in its line, at moments that grow apart: each is an edit.
const (
	elapsedFirst = 30 * time.Second // before it no user wonders
	elapsedLeast = 10 * time.Second // when another edit is made anyway
)

// timed says that a tool runs, and since when is known.
func (t *toolLine) timed() bool { return t != nil && !t.ended() && t.held == "" && !t.began.IsZero() }

// elapse notes how long the tools that run have been running, in the segments from one on: what stands in
// earlier messages stays as it is.
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

// nextElapse is when a line is next worth an edit for nothing but its time: after 30 s, 1 min, 2 min, 4 min and
// so on. False when nothing runs in the segments from one on.
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
