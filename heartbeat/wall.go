package heartbeat

import "time"

// A naive time is what a clock on the wall shows, written as if it were UTC. Between naive times there are no
// gaps and none comes twice, so schedules are reckoned in them and then placed in the world.

// naiveOf is what the clock on the wall shows at t.
func naiveOf(t time.Time, loc *time.Location) time.Time {
	l := t.In(loc)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// instantOf is when the clock on the wall shows naive: the first time, if it shows it twice, and the end of the
// gap, if it never does.
func instantOf(naive time.Time, loc *time.Location) time.Time {
	before, after := offsetAt(naive.Add(-24*time.Hour), loc), offsetAt(naive.Add(24*time.Hour), loc)
	var found time.Time
	for _, offset := range []time.Duration{before, after} {
		t := naive.Add(-offset)
		if offsetAt(t, loc) == offset && (found.IsZero() || t.Before(found)) {
			found = t
		}
	}
	if found.IsZero() {
		found, _ = naive.Add(-before).In(loc).ZoneBounds()
	}
	return found.In(loc)
}

func offsetAt(t time.Time, loc *time.Location) time.Duration {
	_, seconds := t.In(loc).Zone()
	return time.Duration(seconds) * time.Second
}
