package turn

import "time"

// WaitedUntil is until when an agent waited for people, as Loop.Waited says it: now while asks are open, else when
// somebody decided last, which is the zero time if the agent asked nothing.
func WaitedUntil(now time.Time, open int, heard time.Time) time.Time {
	if open > 0 {
		return now
	}
	return heard
}
