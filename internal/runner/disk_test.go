package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/runner/journal"
)

func blocks(t testing.TB, r *Run) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(r.c.pathOf(r.ID(), outFile), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// Without a reader the oldest output is freed. A later reader gets *LostError and the end of the output.
func TestJournalLimit(t *testing.T) {
	size := int64(256 << 20)
	if os.Getenv("RUNNER_TEST_10GB") != "" { // takes minutes on a busy machine
		size = 10 << 30
	}
	const parts = 8
	c, gate := open(t), filepath.Join(t.TempDir(), "go")
	spec := sh(fmt.Sprintf(`for i in $(seq %d); do until [ -e %s$i ]; do sleep 0.02; done
		yes 0123456789abcde | head -c %d; done; echo the end`, parts, gate, size/parts))
	spec.Limits.MaxJournal = 4 << 20
	const stored = 9 << 20 // the limit, the space that the journal reserves, and what the file system adds
	r := start(t, c, spec)
	r.Detach()
	for part := range int64(parts) {
		if err := os.WriteFile(fmt.Sprint(gate, part+1), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a part of the output, most of which is freed", func() bool {
			return sizeOf(r) >= (part+1)*size/parts && blocks(t, r) <= stored
		})
	}
	eventually(t, "the end", func() bool {
		info, err := c.List(t.Context())
		return err == nil && len(info) == 1 && info[0].Status != nil && info[0].Status.Ended && blocks(t, r) <= stored
	})
	q := attach(t, c, r.ID(), 0)
	var lost *LostError
	if _, err := q.Stdout().Read(make([]byte, 10)); !errors.As(err, &lost) || lost.From != 0 || lost.To < size-stored {
		t.Errorf("%v", err)
	}
	if got := readRest(t, q); !strings.HasSuffix(got, "abcde\nthe end\n") || int64(len(got))+lost.To != size+8 {
		t.Errorf("%d bytes are there", len(got))
	}
}

// The limit also applies if the user has too many inotify watches, so that nothing reports that a journal grows again.
func TestJournalLimitWithoutWatches(t *testing.T) {
	const without = `echo 0 >/proc/sys/user/max_inotify_watches && exec "$0" "$@"`
	if err := exec.Command("/usr/bin/unshare", "-Ur", "sh", "-c", without, "true").Run(); err != nil {
		t.Skip("no user namespace without watches: ", err)
	}
	own, gate := runnerCommand(t), filepath.Join(t.TempDir(), "go")
	c := reopen(t, t.TempDir(), Options{Program: own[0], Command: append([]string{"/usr/bin/unshare", "-Ur", "sh", "-c",
		without}, own...)})
	spec := sh(fmt.Sprintf(`for i in 1 2; do yes 0123456789abcde | head -c %d
		until [ -e %s$i ]; do sleep 0.02; done; done`, 16<<20, gate))
	spec.Limits.MaxJournal = 4 << 20
	r := start(t, c, spec)
	r.Detach()
	for part := range int64(2) {
		eventually(t, "a part of the output, most of which is freed", func() bool {
			return sizeOf(r) == (part+1)*16<<20 && blocks(t, r) <= 9<<20
		})
		time.Sleep(3 * scarceEvery) // the runner notices that the journal has stopped growing
		if err := os.WriteFile(fmt.Sprint(gate, part+1), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// An agent that is far ahead of its reader is paused, and no output is lost.
func TestAgentIsPausedForItsReader(t *testing.T) {
	const size = 512 << 20
	r := startPaused(t, open(t), size)
	got, err := io.Copy(io.Discard, r.Stdout())
	if err != nil || got != size+8 {
		t.Errorf("%d bytes, %v", got, err)
	}
}

// startPaused starts an agent that writes size bytes and a last line, and waits until the runner has paused it. On a
// busy machine the runner may be late, so the agent does not write all of them before the pause.
func startPaused(t *testing.T, c *Client, size int64) *Run {
	t.Helper()
	const enough = pauseLag + 16<<20
	gate := filepath.Join(t.TempDir(), "paused")
	r := start(t, c, sh(fmt.Sprintf(`yes 0123456789abcde | head -c %d; until [ -e %s ]; do sleep 0.02; done
		yes 0123456789abcde | head -c %d; echo the end`, enough, gate, size-enough)))
	for part := int64(8 << 20); part <= pauseLag; part += 8 << 20 {
		eventually(t, "a part of the output", func() bool { return sizeOf(r) >= part })
	}
	eventually(t, "it is paused", func() bool {
		stat := readFile(t, "/proc", strconv.Itoa(r.PID()), "stat")
		return strings.HasPrefix(stat[strings.LastIndex(stat, ") ")+2:], "T")
	})
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// An agent that was paused when its runner died continues.
func TestAPausedAgentOutlivesItsRunner(t *testing.T) {
	const size = 256 << 20
	c := open(t)
	r := startPaused(t, c, size)
	killRunner(t, c)
	got, err := io.Copy(io.Discard, r.Stdout())
	if err != nil || got != size+8 {
		t.Errorf("%d bytes, %v", got, err)
	}
}

// A paused agent whose runner died stays paused until its client returns, and continues without one after a while.
func TestAPausedAgentContinuesWithoutItsClient(t *testing.T) {
	t.Parallel() // it mostly waits
	const size = 1 << 30
	c := open(t)
	r := startPaused(t, c, size)
	c.linking.Lock() // until the client ends, it must not start the next runner
	killRunner(t, c)
	c.life.cancel()
	c.linking.Unlock()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	at := sizeOf(r)
	began := time.Now()
	// starts a runner without attaching
	if _, err := reopen(t, c.dir, Options{}).List(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it continues", func() bool { return sizeOf(r) > at+resumeLag })
	if took := time.Since(began); took < reattachWithin {
		t.Errorf("it continued after %s", took)
	}
}

func TestTruncatedOutput(t *testing.T) {
	r := start(t, open(t), sh(`echo before; read go; : >/proc/self/fd/1; echo after; read go; echo end`))
	readLine(t, r)
	write(t, r, "go\n")
	var lost *LostError
	if _, err := r.Stdout().Read(make([]byte, 1)); !errors.As(err, &lost) || !lost.Damaged {
		t.Fatalf("%v", err)
	}
	write(t, r, "go\n")
	if got := readRest(t, r); !strings.HasSuffix(got, "end\n") {
		t.Errorf("%q", got)
	}
}

func TestStandardErrorLimit(t *testing.T) {
	c := open(t)
	r := start(t, c,
		sh(`for i in 1 2 3 4; do yes 0123456789abcde | head -c 4000000 >&2; sleep 0.3; done
		echo the end >&2; echo ready; sleep 600`))
	readLine(t, r)
	var st unix.Stat_t
	eventually(t, "its head is freed", func() bool {
		if err := unix.Stat(strings.TrimSuffix(r.c.pathOf(r.ID(), outFile), outFile)+errFile, &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks*512 <= 2*journal.MaxStderr
	})
	if got := r.StderrTail(); !strings.HasSuffix(got, "abcde\nthe end\n") || len(got) != journal.StderrTail {
		t.Errorf("%d bytes", len(got))
	}
}

// mount mounts a small file system and returns its directory.
func mount(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// If the disk is full, output that was read is freed. If nothing can be freed, the agent is ended.
func TestFullDisk(t *testing.T) {
	t.Run("something can be freed", func(t *testing.T) {
		c := reopen(t, mount(t, "24m"), Options{})
		r := start(t, c, sh(`while read go; do yes 0123456789abcde | head -c 1048576; done; echo the end`))
		for i := range 60 {
			eventually(t, "room for what comes next", func() bool { return roomAhead(t, r) > 1<<20 })
			if _, err := io.WriteString(r.Stdin(), "go\n"); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 1<<20)
			if _, err := io.ReadFull(r.Stdout(), got); err != nil || !strings.HasSuffix(string(got), "abcde\n") {
				t.Fatalf("%d MB were read, then %v", i, err)
			}
		}
		if err := r.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r.Stdout()); err != nil || string(got) != "the end\n" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("nothing can", func(t *testing.T) {
		dir := mount(t, "24m")
		c := reopen(t, dir, Options{})
		r := start(t, c, sh(`echo before; read go; yes 0123456789abcde | head -c 8388608; sleep 600`))
		readLine(t, r)
		if out, err := exec.Command("sh", "-c",
			"yes | dd bs=65536 of="+dir+"/filler 2>/dev/null; true").CombinedOutput(); err != nil {
			t.Fatal(string(out), err)
		}
		_, err := io.WriteString(r.Stdin(), "go\n")
		if err != nil {
			t.Fatal(err)
		}
		await(t, "its end", r.Done())
		if got := r.Exit(); got.By != ByFullDisk {
			t.Errorf("%+v", got)
		}
		if err := os.Remove(dir + "/filler"); err != nil {
			t.Error(err)
		}
	})
}

// If a runner died during a write to an agent, the agent gets no more input and is ended.
func TestInterruptedWrite(t *testing.T) {
	c := open(t)
	r := start(t, c, sh(`echo ready; sleep 600`))
	readLine(t, r)
	var sent sync.WaitGroup
	sent.Go(func() {
		if n, err := r.Stdin().Write(make([]byte, 1<<20)); err == nil {
			t.Errorf("%d bytes were written", n)
		}
	})
	eventually(t, "the write began", func() bool {
		return strings.Contains(readFile(t, c.dir, r.ID(), logFile),
			lineBegin)
	})
	killRunner(t, c)
	await(t, "its end", r.Done())
	sent.Wait()
	if got := r.Exit(); got.By != ByTornInput {
		t.Errorf("%+v", got)
	}
}

// roomAhead returns the reserved space beyond the end of a run's output. The result is too small if the head is freed
// meanwhile.
func roomAhead(t *testing.T, r *Run) int64 {
	t.Helper()
	f, err := os.Open(r.c.pathOf(r.ID(), outFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kept, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // no data
		return blocks(t, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return blocks(t, r) - (sizeOf(r) - kept)
}

// sizeOf returns the size of a run's output.
func sizeOf(r *Run) int64 {
	info, err := os.Stat(r.c.pathOf(r.ID(), outFile))
	if err != nil {
		return 0
	}
	return info.Size()
}
