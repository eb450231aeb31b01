package schedule

import "time"

// A wall time is the local time of a zone, written as if it were UTC. Wall times have no gaps and no repetitions, so
// schedules are computed in them and then converted to instants.

// wallTime is the local time at t.
func wallTime(t time.Time, loc *time.Location) time.Time {
	l := t.In(loc)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// instant is the moment at which clocks of a zone show a wall time: the first one if they show it twice, and the end of
// the gap if they skip it.
func instant(wall time.Time, loc *time.Location) time.Time {
	before, after := offsetAt(wall.Add(-24*time.Hour), loc), offsetAt(wall.Add(24*time.Hour), loc)
	var found time.Time
	for _, offset := range []time.Duration{before, after} {
		t := wall.Add(-offset)
		if offsetAt(t, loc) == offset && (found.IsZero() || t.Before(found)) {
			found = t
		}
	}
	if found.IsZero() {
		found, _ = wall.Add(-before).In(loc).ZoneBounds()
	}
	return found.In(loc)
}

func offsetAt(t time.Time, loc *time.Location) time.Duration {
	_, seconds := t.In(loc).Zone()
	return time.Duration(seconds) * time.Second
}
