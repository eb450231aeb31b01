package turn

import (
	"testing"
	"time"
)

func TestSilenceCountsFromAPersonsDecision(t *testing.T) {
	now, heard := time.Unix(100, 0), time.Unix(70, 0)
	for _, c := range []struct {
		what  string
		open  int
		heard time.Time
		want  time.Time
	}{
		{"nobody was asked", 0, time.Time{}, time.Time{}},
		{"somebody is asked", 1, time.Time{}, now},
		{"somebody decided, and another is asked", 1, heard, now},
		{"somebody decided", 0, heard, heard},
	} {
		if got := WaitedUntil(now, c.open, c.heard); !got.Equal(c.want) {
			t.Errorf("%s: until %v, want %v", c.what, got, c.want)
		}
	}
}
