package heartbeat

import (
	"fmt"
	"time"
)

// QuietPolicy is what becomes of a run that is due in quiet hours.
type QuietPolicy string

// The quiet policies. QuietHold is the default.
const (
	QuietHold QuietPolicy = "hold" // it runs when the quiet hours end
	QuietSkip QuietPolicy = "skip"
)

// Quiet is the time of day in which a job does not run unless a person wants it to, in the job's zone. Both ends
// empty is none. From later than To passes midnight: "22:00" to "07:00".
type Quiet struct {
	From, To string // "15:04"
	Policy   QuietPolicy
}

func (q Quiet) set() bool { return q.From != "" || q.To != "" }

func (q Quiet) check() error {
	if !q.set() {
		return nil
	}
	from, errFrom := clockTime(q.From)
	to, errTo := clockTime(q.To)
	switch {
	case errFrom != nil || errTo != nil:
		return fmt.Errorf("quiet hours are two times of day such as 22:00 and 07:00, not %q and %q", q.From, q.To)
	case from == to:
		return fmt.Errorf("quiet hours from %s to %s leave no time to run", q.From, q.To)
	case q.Policy != QuietHold && q.Policy != QuietSkip:
		return fmt.Errorf("what is due in quiet hours is \"hold\" or \"skip\", not %q", q.Policy)
	}
	return nil
}

// until says when the quiet hours that hold at now end; false if there are none.
func (q Quiet) until(now time.Time, loc *time.Location) (time.Time, bool) {
	if !q.set() {
		return time.Time{}, false
	}
	from, errFrom := clockTime(q.From)
	to, errTo := clockTime(q.To)
	if errFrom != nil || errTo != nil {
		return time.Time{}, false
	}
	naive := naiveOf(now, loc)
	day := naive.Truncate(24 * time.Hour)
	at := naive.Sub(day)
	inside := from <= at && at < to
	end := day.Add(to)
	if from > to {
		inside = at >= from || at < to
		if at >= from {
			end = end.Add(24 * time.Hour)
		}
	}
	if !inside {
		return time.Time{}, false
	}
	if over := instantOf(end, loc); over.After(now) {
		return over, true
	}
	return time.Time{}, false // an hour that comes twice was quiet the first time
}

// clockTime is a time of day since its midnight.
func clockTime(text string) (time.Duration, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, err
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}
