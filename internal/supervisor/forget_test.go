package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// filesOf reads all files of a directory.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func dirOf(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// with gives files with another one, which may be nil for none.
func with(files map[string][]byte, name string, data []byte) map[string][]byte {
	changed := map[string][]byte{name: data}
	for n, d := range files {
		if n != name {
			changed[n] = d
		}
	}
	if data == nil {
		delete(changed, name)
	}
	return changed
}

const forgetPart = 16 << 10 // a segment of the journals in these tests

// What is forgotten is gone from disk and memory, and the rest is there: for readers, for what comes after, and for who
// finds the directory of a dead supervisor.
func TestForgetTakesWhatIsBeforeAndNothingElse(t *testing.T) {
	const end = 5*forgetPart + 1000
	for name, offsets := range map[string][]int64{
		"nothing":                     {0},
		"in the first segment":        {10},
		"in the middle of a segment":  {2*forgetPart + 77},
		"at a border":                 {3 * forgetPart},
		"next to a border":            {3*forgetPart - 1, 3*forgetPart + 1},
		"in the last segment":         {end - 1},
		"all":                         {end},
		"twice the same":              {100, 100},
		"all, twice":                  {end, end},
		"again and less":              {2 * forgetPart, forgetPart},
		"one byte after the other":    {1, 2, 3, 4},
		"more than there is, and all": {end + 10, end},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := testJournal(t, dir, journalParts*forgetPart, time.Now)
			defer s.closeFile()
			for s.end < end {
				s.append(pattern(s.end, int(min(1000, end-s.end))))
			}
			var upTo int64
			for _, offset := range offsets {
				upTo = max(upTo, min(offset, s.end))
				if err := s.forget(offset); err != nil {
					t.Fatal(err)
				}
			}
			check := func() {
				t.Helper()
				read, lost, err := drain(s, 0)
				if err != nil || lost != upTo || read != s.end-upTo || s.missing() != 0 {
					t.Errorf("%d read, %d lost of %d, %d are missing: %v", read, lost, s.end, s.missing(), err)
				}
				dead, strange, err := openJournal(dir)
				if err != nil || len(strange) > 0 || dead.end != s.end {
					t.Fatalf("found are %+v, %v, %v", dead, strange, err)
				}
				if read, lost, err = drain(dead, 0); err != nil || lost != upTo || read != s.end-upTo {
					t.Errorf("later %d are read, %d lost: %v", read, lost, err)
				}
				var stored int64
				for name, data := range filesOf(t, dir) {
					if stored += int64(len(data)); !strings.HasPrefix(name, journalFile) {
						t.Errorf("%s is left", name)
					}
				}
				if stored != s.end-upTo || s.stored() != stored {
					t.Errorf("%d bytes are on disk, %d by the books", stored, s.stored())
				}
			}
			check()
			s.append(pattern(s.end, 3000))
			check()
		})
	}
}

// The memory of a supervisor holds nothing of what is forgotten.
func TestForgetOverwritesMemory(t *testing.T) {
	const size = 100
	for _, end := range []int64{30, 100, 150, 777} {
		for offset := range end + 1 {
			r := newRing(size)
			for r.end < end {
				r.append(bytes.Repeat([]byte("x"), int(min(10, end-r.end))))
			}
			r.forget(offset)
			kept := min(end-offset, size, end)
			if n := int64(bytes.Count(r.buf, []byte("x"))); n != kept || end-r.start() != kept {
				t.Fatalf("%d bytes of %d from %d on are kept, from %d on by the books", n, end, offset, r.start())
			}
		}
	}
}

// Whatever step of a forget is the last one of a supervisor that is killed: everything that is to be kept is found once.
func TestForgetCutShort(t *testing.T) {
	const end, offset = 5*forgetPart + 1000, 2*forgetPart + 5000
	dir := t.TempDir()
	s := testJournal(t, dir, journalParts*forgetPart, time.Now)
	defer s.closeFile()
	s.append(pattern(0, end/2))
	s.append(pattern(s.end, end-end/2))
	before := filesOf(t, dir)
	if err := s.forget(offset); err != nil {
		t.Fatal(err)
	}
	after := filesOf(t, dir)
	name := filepath.Base(segment{start: offset}.path())
	tail := after[name]
	if len(tail) != forgetPart-5000 || len(before) != 6 || len(after) != 4 {
		t.Fatalf("%d files, then %d, a tail of %d bytes", len(before), len(after), len(tail))
	}
	steps := []map[string][]byte{
		before,
		with(before, tailFile, []byte{}),
		with(before, tailFile, tail[:1000]),
		with(before, tailFile, tail),
		with(before, name, tail),
	}
	for i := range 3 { // segments that are wholly before
		steps = append(steps, with(steps[len(steps)-1], filepath.Base(segment{start: int64(i) * forgetPart}.path()), nil))
	}
	for i, files := range steps {
		dead, strange, err := openJournal(dirOf(t, files))
		if err != nil || len(strange) > 0 || dead.end != end {
			t.Fatalf("step %d: %+v, %v, %v", i, dead, strange, err)
		}
		if read, lost, err := drain(dead, offset); err != nil || lost != 0 || read != end-offset {
			t.Errorf("step %d: %d are read, %d lost: %v", i, read, lost, err)
		}
	}
	if n := len(steps[len(steps)-1]); n != len(after) {
		t.Errorf("the last step leaves %d files, not %d", n, len(after))
	}
}

// What cannot be written is not removed either, and the next try forgets it.
func TestForgetTriesAgain(t *testing.T) {
	dir := t.TempDir()
	s := testJournal(t, dir, journalParts*forgetPart, time.Now)
	defer s.closeFile()
	s.append(pattern(0, 2*forgetPart))
	if err := os.MkdirAll(filepath.Join(dir, tailFile, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.forget(100); err == nil {
		t.Fatal("it forgot into a file that is a directory")
	}
	if read, _, err := drain(s, 100); err != nil || read != s.end-100 {
		t.Errorf("%d are left: %v", read, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, tailFile)); err != nil {
		t.Fatal(err)
	}
	if err := s.forget(100); err != nil || s.stored() != s.end-100 {
		t.Errorf("%d of %d are left: %v", s.stored(), s.end, err)
	}
}

// An owner has output forgotten that it was sent; a reader further on does not notice, one that asks for less is told,
// and only the owner may.
func TestForgetByTheOwner(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	spec := sh(`echo the first $WORD >&2; echo the first $WORD; read x; echo the second; exec cat`)
	spec.Env = append(spec.Env, "WORD=sesame") // which is in no file of the run's but for what it prints
	run := start(t, root, spec)
	line := len("the first sesame\n")
	readLine(t, run.Stdout())
	eventually(t, "standard error", func() bool { return run.StderrTail() != "" })
	guest, err := root.Follow(t.Context(), run.ID(), int64(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := guest.Forget(t.Context(), 5); err == nil || !strings.Contains(err.Error(), errNotOwner.Error()) {
		t.Errorf("a guest may forget: %v", err)
	}
	if !onDisk(t, root.path(run.ID()), "first sesame") {
		t.Error("it was never on disk: this test proves nothing")
	}
	if err := run.Forget(t.Context(), 1<<40); err != nil { // all that it was sent
		t.Fatal(err)
	}
	if onDisk(t, root.path(run.ID()), "sesame") {
		t.Error("it is still on disk")
	}
	if _, err := io.WriteString(run.Stdin(), "go on\n"); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Run{"owner": run, "guest": guest} {
		if got := readLine(t, r.Stdout()); got != "the second" || r.LostBytes() != 0 {
			t.Errorf("the %s reads %q, %d bytes are lost", name, got, r.LostBytes())
		}
	}
	late, err := root.Follow(t.Context(), run.ID(), 3)
	if err != nil {
		t.Fatal(err)
	}
	var lost *LostError
	if _, err := late.Stdout().Read(make([]byte, 1)); !errors.As(err, &lost) || lost.From != 3 || lost.To != int64(line) || lost.Damaged {
		t.Fatalf("who asks for what was forgotten gets %v", err)
	}
	if got := readLine(t, late.Stdout()); got != "the second" {
		t.Errorf("then it reads %q", got)
	}
	if info, err := run.Inspect(t.Context()); err != nil || info.OutputEnd != int64(line+len("the second\n")) || info.Spooled != int64(len("the second\n")) {
		t.Errorf("%+v, %v", info, err)
	}
}

// onDisk says whether a file below dir holds a text.
func onDisk(t *testing.T, dir, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if info, err := os.Lstat(f); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
			continue
		}
		if raw, err := os.ReadFile(f); err == nil && bytes.Contains(raw, []byte(text)) {
			return true
		}
	}
	return false
}

// A supervisor that is killed at any moment while output is forgotten leaves all that was not.
func TestForgetAndDie(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	for range 8 {
		run := start(t, root, helper(t, "lines", fmt.Sprintf("LINES=%d", 1<<20)))
		eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
		var kept int64 // what was not to be forgotten begins here
		var killed sync.WaitGroup
		last := 1 + rand.IntN(40) // it is killed during one of the next
		r := bufio.NewReaderSize(run.Stdout(), 64<<10)
		for at := int64(lineLength); ; at += lineLength {
			if _, err := io.CopyN(io.Discard, r, lineLength); err != nil {
				break
			}
			if at%(37*lineLength) != 0 {
				continue
			}
			if last--; last == 0 {
				killed.Go(func() { _ = syscall.Kill(run.Info().Supervisor, syscall.SIGKILL) })
			}
			kept = at - 5*lineLength
			if err := run.Forget(context.Background(), kept); err != nil {
				break
			}
		}
		killed.Wait()
		run.Detach()
		eventually(t, "the agent is gone", func() bool { return !root.look(t.Context(), run.ID()).Alive })
		if info := root.look(t.Context(), run.ID()); info.Problem != "" || info.Supervised {
			t.Errorf("found is %+v", info)
		}
		again := attach(t, root, run.ID(), kept)
		raw := readAll(t, again.Stdout())
		for i := range len(raw) / lineLength {
			if line := raw[i*lineLength:][:lineLength]; line != numbered(int(kept/lineLength)+i) {
				t.Fatalf("line %d is %.20q", i, line)
			}
		}
		if len(raw) < 5*lineLength || again.LostBytes() != 0 {
			t.Errorf("%d bytes are left, %d lost", len(raw), again.LostBytes())
		}
		if err := again.Collect(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
