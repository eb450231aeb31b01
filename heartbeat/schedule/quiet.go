package schedule

import (
	"fmt"
	"time"
)

// CheckQuiet refuses quiet hours that are not two different times of day such as "22:00" and "07:00".
func CheckQuiet(from, to string) error {
	start, errFrom := clockTime(from)
	end, errTo := clockTime(to)
	switch {
	case errFrom != nil || errTo != nil:
		return fmt.Errorf("quiet hours are two times of day such as 22:00 and 07:00, not %q and %q", from, to)
	case start == end:
		return fmt.Errorf("quiet hours from %s to %s leave no time to run", from, to)
	}
	return nil
}

// QuietUntil gives the end of the quiet hours that contain now; false outside of quiet hours. Hours that start later
// than they end pass midnight. Two empty times are no quiet hours.
func QuietUntil(from, to string, now time.Time, loc *time.Location) (time.Time, bool) {
	start, errFrom := clockTime(from)
	stop, errTo := clockTime(to)
	if errFrom != nil || errTo != nil {
		return time.Time{}, false
	}
	wall := wallTime(now, loc)
	day := wall.Truncate(24 * time.Hour)
	at := wall.Sub(day)
	inside := start <= at && at < stop
	end := day.Add(stop)
	if start > stop {
		inside = at >= start || at < stop
		if at >= start {
			end = end.Add(24 * time.Hour)
		}
	}
	if !inside {
		return time.Time{}, false
	}
	if over := instant(end, loc); over.After(now) {
		return over, true
	}
	return time.Time{}, false // this hour comes twice, and the first one was quiet
}

// clockTime is a time of day since its midnight.
func clockTime(text string) (time.Duration, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, err
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}
