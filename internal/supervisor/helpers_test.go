package supervisor

import (
	"bufio"
	"context"
	"ductor/internal/proctree"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runHelper is a program under test: an agent, or what an agent starts.
func runHelper(name string) (int, error) {
	switch name {
	case "sleep":
		time.Sleep(time.Minute)
	case "deaf":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "forker": // starts a successor and ends, over and over
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(2 * time.Millisecond)
		return startHelper("forker", false)
	case "family": // every kind of descendant that has been seen to survive its agent
		for name, session := range map[string]bool{"sleep": false, "deaf": true, "forker": false} {
			if code, err := startHelper(name, session); err != nil {
				return code, err
			}
		}
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "lines":
		return printLines(os.Getenv("LINES"), os.Stdout)
	case "insider": // ends all that is in its own group
		if code, err := startHelper("deaf", true); err != nil {
			return code, err
		}
		own, err := proctree.OwnGroup()
		if err != nil {
			return 1, err
		}
		for len(proctree.Group{Path: own}.PIDs()) < 2 {
			time.Sleep(time.Millisecond)
		}
		if err := proctree.In(proctree.Group{Path: own}).End(context.Background(), 0); err != nil {
			return 1, err
		}
		fmt.Println("alone with", len(proctree.Group{Path: own}.PIDs())-1)
	case "clock": // the time, every other millisecond
		for {
			if _, err := fmt.Println(sinceBoot().Nanoseconds()); err != nil {
				return 0, nil // no client reads any more
			}
			time.Sleep(2 * time.Millisecond)
		}
	case "client":
		return runClient()
	case "starter":
		return runStarter()
	default:
		return 2, fmt.Errorf("no helper %q", name)
	}
	return 0, nil
}

func startHelper(name string, session bool) (int, error) {
	child := exec.Command(os.Args[0])
	child.Env = append(withoutHelper(os.Environ()), helperVar+"="+name)
	child.Stdout = os.Stdout
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := child.Start(); err != nil {
		return 1, err
	}
	return 0, nil
}

// printLines prints numbered lines, the number at their beginning.
func printLines(count string, w io.Writer) (int, error) {
	var n int
	if _, err := fmt.Sscan(count, &n); err != nil {
		return 2, err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	for i := range n {
		if _, err := out.WriteString(numbered(i)); err != nil {
			return 1, err
		}
	}
	if err := out.Flush(); err != nil {
		return 1, err
	}
	return 0, nil
}

const lineLength = 1024

func numbered(i int) string {
	head := fmt.Sprintf("%d ", i)
	return head + strings.Repeat("x", lineLength-len(head)-1) + "\n"
}

func withoutHelper(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, helperVar+"=") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// openRoot makes runs that this test binary supervises. Whatever is left of them ends with the test.
func openRoot(t testing.TB, opts Options) *Root {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { noCgroups(t, dir) })
	return reopen(t, dir, opts)
}

func reopen(t testing.TB, dir string, opts Options) *Root {
	t.Helper()
	if opts.Command == nil {
		opts.Command = []string{self(t), "supervise"}
	}
	root, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ids, err := root.ids()
		if err != nil {
			t.Error(err)
		}
		for _, id := range ids {
			if err := root.Kill(context.Background(), id); err != nil {
				t.Log("clean up:", err)
			}
			if err := root.Collect(context.Background(), id); err != nil {
				t.Log("clean up:", err)
			}
		}
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func sh(script string) Spec {
	return Spec{Path: "sh", Args: []string{"-c", script}, Env: os.Environ()}
}

func helper(t testing.TB, name string, env ...string) Spec {
	return Spec{Path: self(t), Env: append(append(withoutHelper(os.Environ()), helperVar+"="+name), env...)}
}

func start(t testing.TB, root *Root, spec Spec) *Run {
	t.Helper()
	run, err := root.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func attach(t testing.TB, root *Root, id string, offset int64) *Run {
	t.Helper()
	run, err := root.Attach(t.Context(), id, offset)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// await fails the test when c is not closed in good time.
func await(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: not in 20 s", what)
	}
}

// eventually fails the test when ok does not become true in good time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(until) {
			t.Fatalf("%s: not in 20 s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("after %d bytes: %v", len(raw), err)
	}
	return string(raw)
}

func readLine(t testing.TB, r io.Reader) string {
	t.Helper()
	line, err := bufio.NewReaderSize(oneByte{r}, 16).ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// oneByte never reads ahead.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

// survivors lists processes that carry a run's mark, whoever their parent is now.
func survivors(t testing.TB, id string) []int {
	t.Helper()
	ids, err := proctree.Marked(markOf(id))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range ids {
		pids = append(pids, p.PID)
	}
	return pids
}

func mustStop(t testing.TB, run *Run, grace time.Duration) {
	t.Helper()
	if err := run.Stop(t.Context(), grace); err != nil {
		t.Fatal(err)
	}
}

func exists(t testing.TB, path ...string) bool {
	t.Helper()
	_, err := os.Lstat(filepath.Join(path...))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func itoa(n int) string { return fmt.Sprint(n) }

// leaveOut skips a test that this machine cannot run. Where everything must be there it fails instead.
func leaveOut(t *testing.T, why ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why...)
	}
	t.Skip(why...)
}

// needRoot skips a test that cannot be had without root; under CI it must be had.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		leaveOut(t, "this needs root")
	}
}
