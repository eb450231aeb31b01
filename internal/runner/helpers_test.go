package runner

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
)

const patience = time.Minute

// runnerCommand returns a command that runs a runner in this test binary.
func runnerCommand(t testing.TB) []string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{path, "runner"}
}

// open returns a client of a new directory. All its processes end with the test.
func open(t testing.TB) *Client {
	t.Helper()
	return reopen(t, t.TempDir(), Options{})
}

func reopen(t testing.TB, dir string, o Options) *Client {
	t.Helper()
	if o.Command == nil {
		o.Command = runnerCommand(t)
	}
	c, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		runs, err := c.List(context.Background())
		if err != nil && !errors.Is(err, errClosed) {
			t.Error(err)
		}
		for _, r := range runs {
			if err := c.Collect(context.Background(), r.ID); err != nil {
				t.Error("clean up:", err)
			}
		}
		if id, ok := runnerOf(c); ok {
			_ = id.Signal(unix.SIGTERM)
			eventually(t, "the runner leaves", func() bool { return !id.Running() })
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// runnerOf returns the runner that a client is connected to.
func runnerOf(c *Client) (proctree.ID, bool) {
	l, err := c.connect(context.Background(), AsIs)
	if err != nil {
		return proctree.ID{}, false
	}
	r, err := l.ask(context.Background(), request{Op: opHello, Version: Version}, nil)
	if err != nil {
		return proctree.ID{}, false
	}
	return proctree.LookUp(r.PID)
}

// killRunner kills the runner of a client and waits for its end.
func killRunner(t testing.TB, c *Client) {
	t.Helper()
	id, ok := runnerOf(c)
	if !ok {
		t.Fatal("no runner")
	}
	if err := id.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the runner is dead", func() bool { return !id.Running() })
}

func sh(script string) Spec {
	return Spec{Path: "sh", Args: []string{"-c", script}, Env: os.Environ()}
}

func start(t testing.TB, c *Client, spec Spec) *Run {
	t.Helper()
	r, err := c.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func attach(t testing.TB, c *Client, id string, offset int64) *Run {
	t.Helper()
	r, err := c.Attach(t.Context(), id, offset)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t testing.TB, r *Run, text string) {
	t.Helper()
	if _, err := io.WriteString(r.Stdin(), text); err != nil {
		t.Fatal(err)
	}
}

// readLine reads one line, byte by byte.
func readLine(t testing.TB, r *Run) string {
	t.Helper()
	text, err := bufio.NewReaderSize(bytewise{r.Stdout()}, 16).ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v", text, err)
	}
	return strings.TrimSuffix(text, "\n")
}

type bytewise struct{ r io.Reader }

func (b bytewise) Read(p []byte) (int, error) { return b.r.Read(p[:1]) }

func readRest(t testing.TB, r *Run) string {
	t.Helper()
	out, err := io.ReadAll(r.Stdout())
	if err != nil {
		t.Fatalf("after %d bytes: %v", len(out), err)
	}
	return string(out)
}

func stop(t testing.TB, r *Run, grace time.Duration) {
	t.Helper()
	if err := r.Stop(t.Context(), grace); err != nil {
		t.Fatal(err)
	}
	if left := processesOfRun(t, r.ID()); len(left) > 0 {
		t.Errorf("after Stop these run: %v", left)
	}
}

func processesOfRun(t testing.TB, id string) []proctree.ID {
	t.Helper()
	ids, err := proctree.Marked(Mark(id))
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func await(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s: not in %s", what, patience)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: not in %s", what, patience)
		}
	}
}

func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func readFile(t testing.TB, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Collect ends the remaining processes of a run, deletes the run and detaches.
func (r *Run) Collect(ctx context.Context) error {
	if err := r.c.Collect(ctx, r.ID()); err != nil {
		return err
	}
	r.Detach()
	return nil
}
