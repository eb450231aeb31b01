package turn

import "time"

// Resumed is the position and the start time of a turn that the previous process of ductor started.
type Resumed struct {
	From  int64     // items that end at or before this offset belong to earlier turns
	Began time.Time // zero means the time of the output before From: When(From-1)
	When  func(offset int64) time.Time
}

// replay tracks the position of a resumed turn in the output from before ductor attached.
type replay struct {
	Resumed
	active bool  // false after that output, and for a turn that was not resumed
	at     int64 // offset after the current item
}

// reach advances to an item that ends at the offset end, or 0 if the item is not output. It returns false if the item
// belongs to an earlier turn.
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
		return r.When(max(r.at-1, 0)) // before all output, the time of the first output
	}
}
