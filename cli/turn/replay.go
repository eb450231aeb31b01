package turn

import "time"

// Resumed is the position and the start time of a turn that the previous process of ductor started.
type Resumed struct {
	From  int64     // items that end at or before it belong to earlier turns
	Began time.Time // zero means When(From-1), the time of the output before it
	When  func(offset int64) time.Time
}

// replay is the position of a resumed turn in the output that the program wrote before ductor attached.
type replay struct {
	Resumed
	active bool  // false once that output is handled, and for a turn that was not resumed
	at     int64 // the offset after the current item
}

// reach moves to an item that ends at the offset end. end is 0 if the item is not output. reach returns false if the
// item belongs to an earlier turn.
func (r *replay) reach(end int64) bool {
	if !r.active || end == 0 {
		return true
	}
	if end <= r.From {
		return false
	}
	r.at = end
	return true
}

// timestamp returns the time of the current item. It returns zero if the item is new, or if its time is unknown.
func (r *replay) timestamp() time.Time {
	switch {
	case !r.active:
		return time.Time{}
	case r.at == r.From && !r.Began.IsZero():
		return r.Began
	default:
		return r.When(max(r.at-1, 0)) // before any output of the program, the time of its first
	}
}
