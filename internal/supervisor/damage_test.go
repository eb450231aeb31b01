package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// needRoot skips a test that cannot be had without root; under CI it must be had.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		leaveOut(t, "this needs root")
	}
}

func TestVersionsAgreeOrSayWhy(t *testing.T) {
	t.Parallel()
	const id = "drill"
	dir := t.TempDir()
	theirs := func(p string) []string { return []string{self(t), "supervise", "protocol=" + p} }
	for _, tc := range []struct {
		name       string
		supervisor string
		client     Protocol
		refused    bool
	}{
		{"a newer client adopts", "3:3", Protocol{5, 3}, false},
		{"an older client adopts", "5:3", Protocol{3, 2}, false},
		{"too old a supervisor", "3:3", Protocol{5, 4}, true},
		{"too old a client", "5:4", Protocol{3, 2}, true},
	} {
		var theirP Protocol
		if _, err := fmt.Sscanf(tc.supervisor, "%d:%d", &theirP.Version, &theirP.Min); err != nil {
			t.Fatal(err)
		}
		starter := reopen(t, dir, Options{Command: theirs(tc.supervisor), Protocol: theirP})
		spec := sh(`echo one; sleep 600`)
		spec.ID = id
		run := start(t, starter, spec)
		readLine(t, run.Stdout())
		run.Detach()

		root := reopen(t, dir, Options{Protocol: tc.client})
		again, err := root.Attach(t.Context(), id, 0)
		infos, listErr := root.List(t.Context())
		if listErr != nil || len(infos) != 1 || infos[0].Protocol != theirP || !infos[0].Alive {
			t.Errorf("%s: listed as %+v, %v", tc.name, infos, listErr)
		}
		var no *VersionError
		if tc.refused {
			if !errors.As(err, &no) || no.Client != tc.client || no.Supervisor != theirP ||
				!strings.Contains(err.Error(), theirP.String()) || !strings.Contains(err.Error(), tc.client.String()) {
				t.Errorf("%s: %v", tc.name, err)
			}
			if !strings.Contains(infos[0].Problem, "protocol") {
				t.Errorf("%s: listed without a word: %+v", tc.name, infos[0])
			}
		} else if err != nil || readLine(t, again.Stdout()) != "one" {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err := root.Kill(t.Context(), id); err != nil { // whatever it speaks
			t.Errorf("%s: kill: %v", tc.name, err)
		}
		if left := survivors(t, id); len(left) > 0 {
			t.Errorf("%s: %v are left", tc.name, left)
		}
		if err := starter.Collect(t.Context(), id); err != nil {
			t.Errorf("%s: collect: %v", tc.name, err)
		}
	}
}

func TestStrangeHellosAreRefused(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	rec, err := root.record(run.ID())
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"garbage":        "GET / HTTP/1.1\r\n\r\n",
		"no hello":       "Q\x00\x00\x00\x02{}",
		"not json":       "H\x00\x00\x00\x02{{",
		"unknown role":   `{"version":1,"min_version":1,"role":"dance"}`,
		"second start":   `{"version":1,"min_version":1,"role":"start","spec":{"id":"x","path":"/bin/sh"}}`,
		"negative":       `{"version":1,"min_version":1,"role":"own","offset":-1}`,
		"behind the end": `{"version":1,"min_version":1,"role":"own","offset":5}`,
	} {
		conn, err := root.net.dial(t.Context(), root.path(rec.ID))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(raw, "{") {
			err = (&frameWriter{w: conn}).bytes(kindHello, []byte(raw))
		} else {
			_, err = io.WriteString(conn, raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = closeWrite(conn)
		answer, err := io.ReadAll(conn)
		if err == nil && len(answer) > 0 && answer[0] != byte(kindRefused) {
			t.Errorf("%s: answered with %q", name, answer)
		}
		_ = conn.Close()
	}
	if _, err := io.WriteString(run.Stdin(), "still here\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, run.Stdout()); got != "still here" {
		t.Errorf("%q", got)
	}
}

func closeWrite(c io.Closer) error { return c.(interface{ CloseWrite() error }).CloseWrite() }

func TestUnknownFieldsAndRequestsAreNoTrouble(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	rec, err := root.record(run.ID())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := root.net.dial(t.Context(), root.path(rec.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w, r := &frameWriter{w: conn}, newFrameReader(conn)
	for _, f := range []struct {
		k    kind
		body string
	}{
		{kindHello, `{"version":1,"min_version":1,"role":"ask","colour":"green","spec":{"shape":[1,2]}}`},
		{'~', "a frame of a later version"},
		{kindRequest, `{"seq":1,"op":"sing","tune":7}`},
		{kindRequest, `{"seq":2,"op":"resize","rows":7}`},
	} {
		if err := w.bytes(f.k, []byte(f.body)); err != nil {
			t.Fatal(err)
		}
	}
	if k, _, err := r.next(); err != nil || k != kindWelcome {
		t.Fatalf("%q, %v", k, err)
	}
	answers := map[uint64]reply{}
	for range 2 {
		k, payload, err := r.next()
		var answer reply
		if err != nil || k != kindReply || json.Unmarshal(payload, &answer) != nil {
			t.Fatalf("%q %s, %v", k, payload, err)
		}
		answers[answer.Seq] = answer
	}
	if answers[1].Error == "" || answers[2].Error != "" {
		t.Errorf("%+v", answers)
	}
}

func TestAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	needRoot(t)
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	open := func(path string, mode os.FileMode) { // as if somebody had been careless
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for dir := root.path(run.ID()); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		open(dir, 0o755)
	}
	open(filepath.Join(root.path(run.ID()), socketFile), 0o777)
	answer, err := helloAs(61234, filepath.Join(root.path(run.ID()), socketFile))
	if err != nil || !strings.Contains(answer, "user 61234 may not") {
		t.Errorf("%q, %v", answer, err)
	}
	if info, err := run.Inspect(t.Context()); err != nil || info.AttachedBy != os.Getpid() {
		t.Errorf("%+v, %v", info, err)
	}
}

// helloAs says hello as another user. Only its thread becomes that user, and ends.
func helloAs(uid int, path string) (answer string, err error) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			err = errno
			return
		}
		var fd int
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			return
		}
		buf := make([]byte, 1000)
		var n int
		if n, err = unix.Read(fd, buf); err == nil {
			answer = string(buf[:n])
		}
	}()
	<-said
	return answer, err
}

func TestSocketThatWasRemovedComesBack(t *testing.T) {
	root := openRoot(t, Options{})
	run := start(t, root, sh(`cat`))
	run.Detach()
	eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
	if err := os.Remove(filepath.Join(root.path(run.ID()), socketFile)); err != nil {
		t.Fatal(err)
	}
	again := attach(t, root, run.ID(), 0)
	if _, err := io.WriteString(again.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, again.Stdout()); got != "hello" {
		t.Errorf("%q", got)
	}
}

// spooled starts a run that printed lines, twice the memory's worth, and waits with nobody there.
func spooled(t *testing.T, root *Root) *Run {
	t.Helper()
	const lines = 2 * memorySize / lineLength
	spec := sh(`"$0"; read x`)
	spec.Args = append(spec.Args, self(t))
	spec.Env = append(withoutHelper(spec.Env), helperVar+"=lines", fmt.Sprintf("LINES=%d", lines))
	run := start(t, root, spec)
	eventually(t, "the lines", func() bool {
		return root.look(context.Background(), run.ID()).OutputEnd == lines*lineLength
	})
	run.Detach()
	return run
}

func TestSpoolThatWasCutIsReported(t *testing.T) {
	t.Parallel()
	const whole = 2 * memorySize
	cut := func(t *testing.T, root *Root, id string) {
		segs, _, err := listSegments(root.path(id))
		if err != nil || len(segs) != 1 {
			t.Fatal(segs, err)
		}
		if err := os.Truncate(segs[0].path(), 10*lineLength); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("under a supervisor", func(t *testing.T) {
		root := openRoot(t, Options{})
		run := spooled(t, root)
		cut(t, root, run.ID())
		again := attach(t, root, run.ID(), 5*lineLength)
		if err := again.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		head, err := io.ReadAll(again.Stdout())
		var lost *LostError
		if !errors.As(err, &lost) || !lost.Damaged || lost.From != 10*lineLength || len(head) != 5*lineLength {
			t.Fatalf("%d bytes, %v", len(head), err)
		}
		if rest := readAll(t, again.Stdout()); int64(len(rest)) != whole-lost.To || !strings.HasSuffix(rest, numbered(whole/lineLength-1)) {
			t.Errorf("%d bytes follow", len(rest))
		}
	})
	t.Run("with the supervisor killed", func(t *testing.T) {
		root := openRoot(t, Options{})
		run := spooled(t, root)
		cut(t, root, run.ID())
		kill9(t, run.Info().Supervisor)
		eventually(t, "it is dead", func() bool { return !root.look(t.Context(), run.ID()).Supervised })
		var short *OffsetError
		if _, err := root.Attach(t.Context(), run.ID(), 20*lineLength); !errors.As(err, &short) || short.End != 10*lineLength {
			t.Errorf("%v", err)
		}
		checkLines(t, attach(t, root, run.ID(), 0).Stdout(), 0, 10)
	})
	t.Run("while the agent prints on", func(t *testing.T) {
		root := openRoot(t, Options{})
		run := start(t, root, sh(`cat`))
		for i := range 3 {
			if _, err := fmt.Fprintf(run.Stdin(), "line %d\n", i); err != nil {
				t.Fatal(err)
			}
			if got := readLine(t, run.Stdout()); got != fmt.Sprintf("line %d", i) {
				t.Errorf("%q", got)
			}
			segs, _, err := listSegments(root.path(run.ID()))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(segs[len(segs)-1].path(), 2); err != nil {
				t.Fatal(err)
			}
		}
		kill9(t, run.Info().Supervisor)
		await(t, "done", run.Done())
		got, err := io.ReadAll(attach(t, root, run.ID(), 0).Stdout())
		var lost *LostError
		if !errors.As(err, &lost) || string(got) != "li" || lost.To != 7 {
			t.Errorf("%q, %v: what is missing must not be made up", got, err)
		}
	})
}

func TestGarbageInTheDirectoryIsListedAndCollected(t *testing.T) {
	root := openRoot(t, Options{})
	for id, spec := range map[string]string{"empty": "", "garbage": "{", "other": `{"id":"another"}`} {
		if err := os.Mkdir(root.path(id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root.path(id), specFile), []byte(spec), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root.dir, nestPrefix+"999999999-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	infos, err := root.List(t.Context())
	if err != nil || len(infos) != 3 {
		t.Fatal(infos, err)
	}
	for _, info := range infos {
		if info.Problem == "" || info.Alive {
			t.Errorf("%+v", info)
		}
	}
	if n, err := root.Prune(t.Context(), 0); n != 3 || err != nil {
		t.Errorf("%d pruned, %v", n, err)
	}
	reopen(t, root.dir, Options{})
	if entries, err := os.ReadDir(root.dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v are left", entries, err)
	}
}

// smallDisk makes a root on a disk of its own.
func smallDisk(t *testing.T, size string) *Root {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		leaveOut(t, "no tmpfs can be mounted: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return reopen(t, dir, Options{})
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("an owner gets everything", func(t *testing.T) {
		root := smallDisk(t, "128k")
		run := start(t, root, helper(t, "lines", "LINES=4096"))
		checkLines(t, run.Stdout(), 0, 4096)
		await(t, "done", run.Done())
		eventually(t, "the loss is noted", func() bool {
			info, err := run.Inspect(t.Context())
			return err == nil && info.Status != nil && info.Status.Missing > 0 && len(info.Status.Trouble) > 0
		})
		if run.LostBytes() != 0 {
			t.Errorf("%d bytes lost", run.LostBytes())
		}
	})
	t.Run("the end is there for who comes later", func(t *testing.T) {
		root := smallDisk(t, "128k")
		run := start(t, root, sh(`exec >/dev/null; exec sleep 0`))
		run.Detach()
		spec := helper(t, "lines", "LINES=1024")
		spec.ID = "later"
		run = start(t, root, spec)
		run.Detach()
		eventually(t, "the end", func() bool {
			info := root.look(t.Context(), "later")
			return info.Status != nil && info.Status.Ended
		})
		again := attach(t, root, "later", 0)
		var raw []byte
		for losses := 0; ; losses++ {
			part, err := io.ReadAll(again.Stdout())
			raw = append(raw, part...)
			var lost *LostError
			if err == nil {
				break
			}
			if !errors.As(err, &lost) || losses > 100 {
				t.Fatal(err)
			}
		}
		if int64(len(raw))+again.LostBytes() != 1024*lineLength || !bytes.HasSuffix(raw, []byte(numbered(1023))) || len(raw) < memorySize {
			t.Errorf("%d bytes and %d lost", len(raw), again.LostBytes())
		}
		if got := again.Exit(); !got.Known || got.Code != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("status.json has its place", func(t *testing.T) {
		root := smallDisk(t, "64k")
		spec := sh(`read x; exit 6`)
		spec.Limits.KeepResult = 1
		run := start(t, root, spec)
		eventually(t, "the run is known", func() bool { return exists(t, root.path(run.ID()), specFile) })
		if err := os.WriteFile(filepath.Join(root.dir, "ballast"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		run.Detach()
		run = attach(t, root, run.ID(), 0)
		if err := run.Stdin().Close(); err != nil {
			t.Fatal(err)
		}
		await(t, "done", run.Done())
		run.Detach()
		eventually(t, "the supervisor leaves", func() bool { return root.brood.bury() == 0 })
		if info := root.look(t.Context(), run.ID()); info.Status == nil || info.Status.Code != 6 {
			t.Errorf("%+v", info)
		}
	})
}

func TestPathOfAnyLength(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30), strings.Repeat("longer", 20))
	root := reopen(t, dir, Options{})
	run := start(t, root, sh(`cat`))
	run.Detach()
	again := attach(t, root, run.ID(), 0)
	if _, err := io.WriteString(again.Stdin(), "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := readLine(t, again.Stdout()); got != "hello" {
		t.Errorf("%q", got)
	}
}
