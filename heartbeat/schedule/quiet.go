package schedule

import (
	"fmt"
	"time"
)

// CheckQuiet returns an error unless from and to are two different times of day, such as "22:00" and "07:00".
func CheckQuiet(from, to string) error {
	start, errFrom := time.Parse("15:04", from)
	end, errTo := time.Parse("15:04", to)
	switch {
	case errFrom != nil || errTo != nil:
		return fmt.Errorf("quiet hours are two times of day such as 22:00 and 07:00, not %q and %q", from, to)
	case start.Equal(end):
		return fmt.Errorf("quiet hours from %s to %s leave no time to run", from, to)
	}
	return nil
}

// QuietUntil returns the end of the current quiet hours. It returns false outside of quiet hours. Hours that start
// later than they end span midnight. Two empty times mean no quiet hours.
func QuietUntil(from, to string, now time.Time, loc *time.Location) (time.Time, bool) {
	start, errFrom := daily(from, loc)
	stop, errTo := daily(to, loc)
	if errFrom != nil || errTo != nil {
		return time.Time{}, false
	}
	if end := stop.Next(now); end.Before(start.Next(now)) {
		return end, true
	}
	return time.Time{}, false
}

// daily returns the schedule of a time of day.
func daily(text string, loc *time.Location) (Schedule, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return nil, err
	}
	return parseCron(fmt.Sprintf("%d %d * * *", t.Minute(), t.Hour()), loc)
}
