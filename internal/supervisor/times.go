package supervisor

import (
	"cmp"
	"errors"
	"slices"
	"sort"
	"time"
)

// Times tells when output was printed, as exactly as it was noted: to some 40 ms, or to a thousandth of
// the time it all took. The zero value knows nothing.
type Times struct {
	end   int64 // nothing is known from here on
	marks []mark
}

// mark says that the bytes from offset on, up to the next mark, were printed at this time or shortly after.
type mark struct {
	offset int64
	at     time.Duration // since boot in the supervisor, since 1970 in a client
}

// At is when the byte at an offset was printed, by the wall clock of the moment Times was asked for: a clock
// that was set in between moves them all. Zero when it was not printed by then.
func (t Times) At(offset int64) time.Time {
	if offset < 0 || offset >= t.end {
		return time.Time{}
	}
	n := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].offset > offset })
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(t.marks[n-1].at))
}

// timesNote is Times on the wire: an offset and microseconds since 1970, in turns.
type timesNote struct {
	End   int64   `json:"end"`
	Marks []int64 `json:"marks"`
}

func (t Times) note() *timesNote {
	note := &timesNote{End: t.end, Marks: make([]int64, 0, 2*len(t.marks))}
	for _, m := range t.marks {
		note.Marks = append(note.Marks, m.offset, m.at.Microseconds())
	}
	return note
}

func (n *timesNote) times() (Times, error) {
	if n == nil || len(n.Marks)%2 != 0 {
		return Times{}, errors.New("the supervisor did not tell times")
	}
	t := Times{end: n.End}
	for pair := range slices.Chunk(n.Marks, 2) {
		t.marks = append(t.marks, mark{offset: pair[0], at: time.Duration(pair[1]) * time.Microsecond})
	}
	if !slices.IsSortedFunc(t.marks, func(a, b mark) int { return cmp.Compare(a.offset, b.offset) }) {
		return Times{}, errors.New("the supervisor told times in disorder")
	}
	return t, nil
}

const (
	markEvery = 20 * time.Millisecond
	mostMarks = 4096
)

// timeIndex notes when output came. It has no lock.
type timeIndex struct {
	every time.Duration // a mark's bytes came within twice this time of it
	marks []mark
}

// note records that bytes from offset on arrive now.
func (x *timeIndex) note(offset int64, now time.Duration) {
	if n := len(x.marks); n > 0 && now-x.marks[n-1].at < x.every {
		return
	}
	if x.every == 0 {
		x.every = markEvery
	}
	x.marks = append(x.marks, mark{offset: offset, at: now})
	for len(x.marks) >= mostMarks {
		x.thin()
	}
}

// thin forgets marks that follow another one closely. Those after a silence stay, or the silence would be
// forgotten.
func (x *timeIndex) thin() {
	for half := len(x.marks) / 2; len(x.marks) > half; {
		x.every *= 2
		kept := x.marks[:1]
		for _, m := range x.marks[1:] {
			if m.at-kept[len(kept)-1].at >= x.every {
				kept = append(kept, m)
			}
		}
		x.marks = kept
	}
}

// times translates to wall clock time; boot and wall are both now.
func (x *timeIndex) times(end int64, boot time.Duration, wall time.Time) Times {
	t := Times{end: end, marks: slices.Clone(x.marks)}
	for i := range t.marks {
		t.marks[i].at += time.Duration(wall.UnixNano()) - boot
	}
	return t
}
