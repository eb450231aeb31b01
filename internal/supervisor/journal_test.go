package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pattern is output of which every byte tells its place.
func pattern(from int64, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		at := from + int64(i)
		p[i] = byte(at ^ at>>8 ^ at>>16)
	}
	return p
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func testJournal(t interface {
	Fatal(...any)
}, dir string, limit int64, now func() time.Time) *journal {
	first, err := segment{dir: dir}.create()
	if err != nil {
		t.Fatal(err)
	}
	return newJournal(dir, limit, now, first)
}

// drain reads a journal from an offset to its end, and checks every byte against its place.
func drain(s *journal, from int64) (read, lost int64, err error) {
	buf := make([]byte, 1000)
	for at := from; at < s.end; {
		next, _ := s.available(at)
		if next < at || next > s.end {
			return read, lost, fmt.Errorf("available(%d) is %d of %d", at, next, s.end)
		}
		lost += next - at
		at = next
		if at == s.end {
			break
		}
		n := s.readAt(buf, at)
		if !bytes.Equal(buf[:n], pattern(at, n)) {
			return read, lost, fmt.Errorf("%d wrong bytes at %d", n, at)
		}
		at, read = at+int64(n), read+int64(n)
	}
	return read, lost, nil
}

// A journal gives back what was put in, in its place or not at all; it stays below its limit and keeps the end.
func TestJournalLaws(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		c := &clock{time.Unix(0, 0)}
		limit := rapid.Int64Range(minJournal, 512<<10).Draw(t, "limit")
		s := testJournal(t, dir, limit, c.Now)
		defer s.closeFile()
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				s.append(pattern(s.end, rapid.IntRange(1, chunkSize).Draw(t, "n")))
			},
			"disk gone": func(t *rapid.T) {
				s.closeFile()
				s.dir = filepath.Join(dir, "no", "such")
			},
			"forget": func(t *rapid.T) {
				to := rapid.Int64Range(0, s.end+10).Draw(t, "offset")
				err := s.forget(to)
				if left, _ := s.available(0); err == nil && left < min(to, s.end) {
					t.Fatalf("forgotten up to %d, %d can be read", to, left)
				}
			},
			"disk back": func(*rapid.T) { s.dir = dir; c.now = c.now.Add(retryAppend) },
			"cut": func(t *rapid.T) {
				if len(s.segs) == 0 {
					return
				}
				seg := rapid.SampledFrom(s.segs).Draw(t, "segment")
				info, err := os.Stat(seg.path())
				if err == nil && info.Size() > 0 {
					err = os.Truncate(seg.path(), rapid.Int64Range(0, info.Size()-1).Draw(t, "size"))
				}
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				from := rapid.Int64Range(0, s.end).Draw(t, "from")
				read, lost, err := drain(s, from)
				if err != nil || read+lost != s.end-from {
					t.Fatalf("%d read, %d lost of %d: %v", read, lost, s.end-from, err)
				}
				if read < min(s.end-max(from, s.forgotten), memorySize) {
					t.Fatalf("only %d of the last bytes are there", read)
				}
				if s.stored() > limit+limit/journalParts {
					t.Fatalf("%d bytes on disk, the limit is %d", s.stored(), limit)
				}
				if total := s.missing(); total > s.end || total < 0 {
					t.Fatalf("%d of %d are missing", total, s.end)
				}
			},
		})
	})
}

// A reader for whom the agent waits loses nothing while the disk works.
func TestJournalTellsBeforeItWouldLose(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := testJournal(t, dir, rapid.Int64Range(minJournal, 256<<10).Draw(t, "limit"), time.Now)
		defer s.closeFile()
		failing := rapid.Bool().Draw(t, "disk fails")
		if failing {
			s.closeFile()
			s.dir = filepath.Join(dir, "no")
		}
		var reader int64
		for range 15 {
			n := rapid.IntRange(1, chunkSize).Draw(t, "n")
			for s.wouldLose(reader, n) {
				if reader == s.end {
					t.Fatal("a reader that has everything is waited for")
				}
				reader = min(s.end, reader+rapid.Int64Range(1, 60000).Draw(t, "step"))
			}
			s.append(pattern(s.end, n))
			if next, _ := s.available(reader); next != reader {
				t.Fatalf("the reader at %d must go on at %d", reader, next)
			}
		}
	})
}

func TestJournalOfTheDeadIsTheSame(t *testing.T) {
	dir := t.TempDir()
	s := testJournal(t, dir, 64<<10, time.Now)
	for range 10 {
		s.append(pattern(s.end, 10000))
	}
	s.closeFile()
	dead, strange, err := openJournal(dir)
	if err != nil || len(strange) > 0 || dead.end != s.end || dead.stored() != s.stored() {
		t.Fatalf("%+v, %v, %v", dead, strange, err)
	}
	read, lost, err := drain(dead, 0)
	if err != nil || read+lost != s.end || lost == 0 || read < 48<<10 {
		t.Errorf("%d read, %d lost, %v", read, lost, err)
	}
}

func TestSegmentsThatMakeNoSense(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"out.00000000000000000000": 10, "out.00000000000000000006": 5, "out.x": 1, "out.-5": 1, "out.9223372036854775807": 5, "other": 3} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	segs, strange, err := listSegments(dir)
	if err != nil || len(strange) != 4 || len(segs) != 2 || segs[0].end != 6 || segs[1].end != 11 {
		t.Errorf("%+v, %v, %v", segs, strange, err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	dir := t.TempDir()
	tl := newTail(dir)
	defer tl.close()
	for i := range 3000 {
		if err := tl.append(fmt.Appendf(nil, "line %d of complaints, as they come\n", i)); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, stderrFile))
		if err != nil || len(raw) > stderrFull {
			t.Fatal(len(raw), err)
		}
		if n := min(len(tl.last(100)), len(raw)); !bytes.HasSuffix(raw, tl.last(n)) {
			t.Fatalf("the file ends in %q", raw[max(0, len(raw)-40):])
		}
	}
	if got := tl.last(stderrKept); len(got) != stderrKept || !bytes.HasSuffix(got, []byte("line 2999 of complaints, as they come\n")) {
		t.Errorf("%d bytes, ending in %q", len(got), got[max(0, len(got)-40):])
	}
	if got := tl.since(tl.total - 5); string(got) != "come\n" {
		t.Errorf("%q", got)
	}
}
