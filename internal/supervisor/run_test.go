package supervisor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAgentTalksOverItsPipes(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`read line; echo "got $line"; cat; echo oops >&2; exit 3`))
	if _, err := io.WriteString(run.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, run.Stdout()); got != "got hello" {
		t.Fatalf("stdout %q", got)
	}
	if _, err := io.WriteString(run.Stdin(), "more"); err != nil {
		t.Fatal(err)
	}
	if err := run.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, run.Stdout()); got != "more" {
		t.Errorf("stdout %q", got)
	}
	await(t, "done", run.Done())
	if got := run.Exit(); got != (Exit{Known: true, Code: 3}) {
		t.Errorf("exit %+v", got)
	}
	if got := run.StderrTail(); got != "oops\n" {
		t.Errorf("stderr %q", got)
	}
	if got := run.Offset(); got != int64(len("got hello\nmore")) {
		t.Errorf("offset %d", got)
	}
	if _, err := io.WriteString(run.Stdin(), "again"); err == nil {
		t.Error("a write to a dead agent did not fail")
	}
	if err := run.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, root.path(run.ID())) {
		t.Error("a collected run is still on disk")
	}
	eventually(t, "the supervisor leaves", func() bool { return root.pool.reap() == 0 })
}

func TestWhatIsNotThere(t *testing.T) {
	root := openRoot(t, Options{})
	notProgram := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(notProgram, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("\x7fELFnot"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		spec     Spec
		notThere bool
	}{
		{"no such name", Spec{Path: "no-such-program-anywhere"}, true},
		{"no such file", Spec{Path: "/no/such/file"}, true},
		{"not executable", Spec{Path: notProgram}, false},
		{"not a program", Spec{Path: garbage}, false},
		{"no such directory", Spec{Path: "sh", Dir: "/no/such/dir"}, false},
		{"an id that is a path", Spec{Path: "sh", ID: "../x"}, false},
		{"a zero byte", Spec{Path: "sh", Args: []string{"a\x00b"}}, false},
	} {
		_, err := root.Start(t.Context(), tc.spec)
		if err == nil || errors.Is(err, fs.ErrNotExist) != tc.notThere {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := root.Attach(t.Context(), "unknown", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("attach gives %v", err)
	}
	if err := root.Kill(t.Context(), "../.."); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("kill gives %v", err)
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("why")
	cancel(cause)
	if _, err := root.Start(cancelled, sh("true")); !errors.Is(err, cause) {
		t.Errorf("a start after the cancel gives %v", err)
	}
	if ids, err := root.ids(); err != nil || len(ids) != 0 {
		t.Errorf("runs %v, %v are left by starts that failed", ids, err)
	}
}

func TestNothingPrivateIsOnDiskOrInArgv(t *testing.T) {
	root := openRoot(t, Options{})
	spec := sh(`cat`)
	spec.Env = append(spec.Env, "SOME_API_KEY=sk-very-secret-1", "TERM=dumb-terminal")
	spec.Args = append(spec.Args, "--token", "tok-very-secret-2", "--password=pw-very-secret-3", "url?k=sk-very-secret-1", "--token-file", "")
	spec.Labels = map[string]string{"agent": "claude"}
	run := start(t, root, spec)
	if _, err := io.WriteString(run.Stdin(), "very-secret-prompt\n"); err != nil {
		t.Fatal(err)
	}
	readLine(t, run.Stdout())
	files, err := filepath.Glob(filepath.Join(root.path(run.ID()), "*"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		info, err := os.Lstat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(f), info.Mode())
		}
		if !info.Mode().IsRegular() || strings.HasPrefix(filepath.Base(f), journalFile) {
			continue
		}
		raw, err := os.ReadFile(f)
		if err != nil || bytes.Contains(raw, []byte("very-secret")) || bytes.Contains(raw, []byte("dumb-terminal")) {
			t.Errorf("%s holds %s, %v", filepath.Base(f), raw, err)
		}
	}
	cmdline, err := os.ReadFile(filepath.Join("/proc", itoa(run.Info().Supervisor), "cmdline"))
	if err != nil || string(cmdline) != "ductor\x00supervise\x00root="+root.dir+"\x00" {
		t.Errorf("argv %q, %v", cmdline, err)
	}
	environ, err := os.ReadFile(filepath.Join("/proc", itoa(run.Info().Supervisor), "environ"))
	if err != nil || bytes.Contains(environ, []byte("secret")) || bytes.Contains(environ, []byte("USER=")) {
		t.Errorf("environment %q, %v", environ, err)
	}
}

func TestIDIsUsedOnce(t *testing.T) {
	root := openRoot(t, Options{})
	spec := sh("exit 0")
	spec.ID = "turn-1"
	start(t, root, spec)
	if _, err := root.Start(t.Context(), spec); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second start gives %v", err)
	}
}

func TestDetachedRunGoesOnAndIsFoundAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := reopen(t, dir, Options{})
	spec := sh(`echo one; read x; echo two; read y; echo three`)
	spec.Labels = map[string]string{"conversation": "7"}
	run := start(t, root, spec)
	readLine(t, run.Stdout())
	if err := run.Update(t.Context(), map[string]string{"conversation": "7", "turn": "2"}, nil); err != nil {
		t.Fatal(err)
	}
	offset := run.Offset()
	if err := root.Close(); err != nil { // as a client that ends
		t.Fatal(err)
	}
	if _, err := run.Stdout().Read(make([]byte, 1)); !errors.Is(err, ErrDetached) {
		t.Errorf("a read after the detach gives %v", err)
	}

	second := reopen(t, dir, Options{})
	var got Info
	for range 500 { // its supervisor notices a moment later
		infos, err := second.List(t.Context())
		if err != nil || len(infos) != 1 {
			t.Fatal(infos, err)
		}
		if got = infos[0]; !got.Attached {
			break
		}
		time.Sleep(firstPoll)
	}
	if got.ID != run.ID() || !got.Alive || !got.Supervised || got.Attached || got.Labels["turn"] != "2" || got.PID != run.PID() ||
		got.OutputEnd != offset || got.Spooled != offset || got.Memory <= 0 || got.Processes != 1 || len(got.Members) != 1 || got.Members[0] != (Member{PID: got.PID, Name: "sh"}) || got.Protocol != ours() || got.Problem != "" {
		t.Errorf("listed as %+v", got)
	}
	again := attach(t, second, run.ID(), offset)
	if _, err := io.WriteString(again.Stdin(), "x\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, again.Stdout()); got != "two" {
		t.Errorf("%q", got)
	}
	if _, err := io.WriteString(again.Stdin(), "y\n"); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, again.Stdout()); got != "three\n" {
		t.Errorf("%q", got)
	}
	await(t, "done", again.Done())
	if err := again.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestInterruptReachesTheGroup(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(`trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.01; done`))
	readLine(t, run.Stdout())
	if err := run.Interrupt(); err != nil {
		t.Fatal(err)
	}
	await(t, "done", run.Done())
	if got := run.Exit(); got.Code != 7 {
		t.Errorf("exit %+v", got)
	}
	if err := run.Interrupt(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("an interrupt after the end gives %v", err)
	}
}

func TestOutputEndsThoughAGrandchildHoldsIt(t *testing.T) {
	t.Parallel()
	root := openRoot(t, Options{})
	run := start(t, root, sh(`echo last; sleep 60 & exit 0`))
	if got := readAll(t, run.Stdout()); got != "last\n" {
		t.Errorf("%q", got)
	}
	if n := len(survivors(t, run.ID())); n != 1 {
		t.Errorf("%d processes are left, want the sleeper", n)
	}
	if got := run.Status().Leftover; got != 1 {
		t.Errorf("%d leftovers reported", got)
	}
	mustStop(t, run, time.Second)
	if left := survivors(t, run.ID()); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}
