package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T) *Journal {
	t.Helper()
	dir := t.TempDir()
	j, err := Open(filepath.Join(dir, "out"), filepath.Join(dir, "err"), os.O_CREATE|os.O_EXCL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

// write writes n bytes to f, as an agent does, and returns the result of a Check.
func write(t *testing.T, j *Journal, f *os.File, n int) Growth {
	t.Helper()
	if _, err := f.Write(bytes.Repeat([]byte("x"), n)); err != nil {
		t.Fatal(err)
	}
	return j.Check()
}

func TestTheOwnersUnreadOutputIsNotFreed(t *testing.T) {
	j := open(t)
	out, _ := j.Files()
	write(t, j, out, 5*MinSize)
	j.EnforceLimit(MinSize, true)
	if got := j.Freed(); got != 0 {
		t.Errorf("unread output was freed up to %d", got)
	}
	j.SetRead(2 * MinSize)
	j.EnforceLimit(MinSize, true)
	if got := j.Freed(); got != 2*MinSize {
		t.Errorf("freed up to %d, want all that was read", got)
	}
	j.EnforceLimit(MinSize, false)
	if got := j.Freed(); got != 4*MinSize {
		t.Errorf("without an owner: freed up to %d", got)
	}
	if got := j.End(); got != 5*MinSize {
		t.Errorf("the output ends at %d", got)
	}
}

func TestTakeFreedReportsEachChangeOnce(t *testing.T) {
	j := open(t)
	out, _ := j.Files()
	write(t, j, out, 4*MinSize)
	j.FreeOutput(MinSize)
	for _, want := range []bool{true, false} {
		if offset, changed := j.TakeFreed(); offset != MinSize || changed != want {
			t.Errorf("%d, %v; want %d, %v", offset, changed, MinSize, want)
		}
	}
	j.Restore(nil, 2*MinSize)
	if offset, changed := j.TakeFreed(); offset != 2*MinSize || changed {
		t.Errorf("after a restore: %d, %v", offset, changed)
	}
}

func TestCheckReportsGrowthOfBothFiles(t *testing.T) {
	j := open(t)
	out, stderr := j.Files()
	if g := j.Check(); g != (Growth{}) {
		t.Errorf("an empty journal: %+v", g)
	}
	if g := write(t, j, out, 3); g.Bytes != 3 || g.Time == nil || g.Time.Offset != 0 {
		t.Errorf("output: %+v", g)
	}
	if g := write(t, j, stderr, 5); g != (Growth{Bytes: 5}) {
		t.Errorf("standard error: %+v", g)
	}
	if err := out.Truncate(1); err != nil {
		t.Fatal(err)
	}
	if g := j.Check(); g != (Growth{Bytes: 1}) {
		t.Errorf("a truncated file: %+v", g)
	}
}

func TestTheEndOfStandardErrorIsKept(t *testing.T) {
	j := open(t)
	_, stderr := j.Files()
	write(t, j, stderr, MaxStderr+1)
	j.EnforceLimit(1<<30, false)
	if got := j.Stderr(); got != strings.Repeat("x", StderrTail) {
		t.Errorf("%d bytes", len(got))
	}
	first := make([]byte, 1)
	if _, err := stderr.ReadAt(first, 0); err != nil || first[0] != 0 {
		t.Errorf("the head is not freed: %q, %v", first, err)
	}
	j.FreeOutput(0)
	if got := j.Stderr(); got != "" {
		t.Errorf("after it was freed: %d bytes", len(got))
	}
}

func TestAClosedJournalFreesNothing(t *testing.T) {
	j := open(t)
	out, _ := j.Files()
	write(t, j, out, 4*MinSize)
	j.Close()
	j.FreeOutput(MinSize)
	if full := j.EnforceLimit(0, false); full || j.Freed() != 0 {
		t.Errorf("full: %v, freed up to %d", full, j.Freed())
	}
}

func TestTimelineOfALongRun(t *testing.T) {
	line := timeline{every: timeEvery}
	start := time.UnixMicro(0)
	if line.add(0, start) == nil || line.add(1, start.Add(timeEvery-1)) != nil {
		t.Error("entries are not at least timeEvery apart")
	}
	for i := 1; i < maxTimes; i++ {
		line.add(int64(i), start.Add(time.Duration(i)*timeEvery))
	}
	if len(line.entries) != maxTimes || line.every != 2*timeEvery {
		t.Fatalf("%d numbers, every %s", len(line.entries), line.every)
	}
	want := []int64{0, 0, 2, 2 * timeEvery.Microseconds(), 4, 4 * timeEvery.Microseconds()}
	if got := line.clone()[:6]; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
