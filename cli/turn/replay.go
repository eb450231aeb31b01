package turn

import "time"

// Resumed contains the position and the start time of a turn that the previous process of ductor started.
type Resumed struct {
	From  int64     // offset in the output at which the turn starts
	Began time.Time // start time of the turn; if zero, the replay uses When(From-1)
	// When returns the time at which the program printed the byte at this offset. It returns zero if the time is
	// unknown.
	When func(offset int64) time.Time
}

// replay tracks how far a resumed turn has handled the output from before ductor attached.
type replay struct {
	Resumed
	active bool  // whether the turn still has to handle output from before ductor attached
	at     int64 // offset after the current item
}

// reach records that the turn handles an item of the old output. end is the offset after the item, or 0 for an item
// that is not output, which reach ignores. reach returns false if the item belongs to an earlier turn.
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

// timestamp returns when the program printed the current item. It returns zero if the item is new, or if that time is
// unknown.
func (r *replay) timestamp() time.Time {
	switch {
	case !r.active:
		return time.Time{}
	case r.at == r.From && !r.Began.IsZero():
		return r.Began
	default:
		return r.When(max(r.at-1, 0)) // the offset of the item's last byte
	}
}
