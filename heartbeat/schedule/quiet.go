package schedule

import (
	"fmt"
	"time"

	"ductor/lang"
)

// CheckQuiet returns an error unless its arguments are valid and different times of day, such as "22:00" and "07:00".
func CheckQuiet(from, to string) error {
	start, errFrom := time.Parse("15:04", from)
	end, errTo := time.Parse("15:04", to)
	switch {
	case errFrom != nil || errTo != nil:
		return &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.bad-quiet", from, to) }}
	case start.Equal(end):
		return &lang.Error{Explain: func(p lang.Printer) string { return p.Text("job.all-quiet", from, to) }}
	}
	return nil
}

// QuietUntil returns when the current quiet hours end. It returns false if now is outside of quiet hours. If from is
// later in the day than to, the quiet hours include midnight. If both are empty, there are no quiet hours.
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

// daily returns the schedule for a time of day, such as "22:00".
func daily(text string, loc *time.Location) (Schedule, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return nil, err
	}
	return parseCron(fmt.Sprintf("%d %d * * *", t.Minute(), t.Hour()), loc)
}
