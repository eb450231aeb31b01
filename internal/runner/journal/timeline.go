package journal

import (
	"slices"
	"time"
)

const (
	maxTimes  = 4096
	timeEvery = 100 * time.Millisecond
)

// timeline records when the agent printed its output. Its length is limited, so the times of a long run are less exact.
// The Journal's lock guards it.
type timeline struct {
	entries []int64       // an offset in the output, the time of this output, the next offset, and so on
	every   time.Duration // minimum interval between two entries
}

// add adds the time of the output at an offset. It returns nil if the last entry is too recent for another one.
func (t *timeline) add(offset int64, at time.Time) *Time {
	if n := len(t.entries); n > 0 && at.Sub(time.UnixMicro(t.entries[n-1])) < t.every {
		return nil
	}
	added := Time{Offset: offset, At: at.UnixMicro()}
	t.entries = append(t.entries, added.Offset, added.At)
	t.thin()
	return &added
}

// thin limits the number of entries. If there are too many, thin removes every second entry and doubles the minimum
// interval between new entries.
func (t *timeline) thin() {
	if len(t.entries) < 2*maxTimes {
		return
	}
	kept := t.entries[:0]
	for i := 0; i+1 < len(t.entries); i += 4 {
		kept = append(kept, t.entries[i], t.entries[i+1])
	}
	t.entries, t.every = kept, 2*t.every
}

func (t *timeline) clone() []int64 { return slices.Clone(t.entries) }
