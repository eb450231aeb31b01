package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pretendPlace is a place whose proxies are processes of this machine, and which can go away.
type pretendPlace struct {
	t    testing.TB
	root string

	mu      sync.Mutex
	gone    error
	refused int // connections, since it is gone
	conns   []*pretendConn
}

type pretendConn struct {
	net.Conn
	cmd  *exec.Cmd
	once sync.Once
}

func (c *pretendConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { _ = c.cmd.Wait() }) // it ends with its input
	return err
}

func (p *pretendPlace) Dial(ctx context.Context, _ Effort) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone != nil {
		p.refused++
		return nil, p.gone
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	mine, theirs := os.NewFile(uintptr(pair[0]), "mine"), os.NewFile(uintptr(pair[1]), "theirs")
	defer mine.Close()
	defer theirs.Close()
	conn, err := net.FileConn(mine)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self(p.t), "supervise", "bridge", "root="+p.root)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, os.Stderr
	cmd.Env = append(withoutHelper(os.Environ()), "GORACE=atexit_sleep_ms=0")
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &pretendConn{Conn: conn, cmd: cmd}
	p.conns = append(p.conns, c)
	return c, nil
}

// cut breaks every connection by killing its proxy.
func (p *pretendPlace) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.cmd.Process.Kill() // it may be gone
	}
	p.conns = nil
}

func (p *pretendPlace) leave(err error) {
	p.mu.Lock()
	p.gone, p.refused = err, 0
	p.mu.Unlock()
}

// missed says whether somebody tried to get there since it is gone.
func (p *pretendPlace) missed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused > 0
}

func openPlace(t testing.TB, spares int) (*Root, *pretendPlace) {
	t.Helper()
	p := &pretendPlace{t: t, root: t.TempDir()}
	root, err := Open("", Options{Place: p, Spares: spares})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.leave(nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		runs, err := root.List(ctx)
		for _, run := range runs {
			err = errors.Join(err, root.Kill(ctx, run.ID), root.Collect(ctx, run.ID))
		}
		if err = errors.Join(err, root.Close()); err != nil {
			t.Error(err)
		}
	})
	return root, p
}

func TestRunInAPlace(t *testing.T) {
	for _, spares := range []int{0, 1} {
		root, _ := openPlace(t, spares)
		for range 3 {
			run := start(t, root, sh(`read line; echo "got $line"; echo why >&2; exit 3`))
			if _, err := io.WriteString(run.Stdin(), "it\n"); err != nil {
				t.Fatal(err)
			}
			if got := readAll(t, run.Stdout()); got != "got it\n" {
				t.Errorf("it says %q", got)
			}
			await(t, "its end", run.Done())
			if run.Exit() != (Exit{Known: true, Code: 3}) || run.StderrTail() != "why\n" {
				t.Errorf("%+v, %q", run.Exit(), run.StderrTail())
			}
			if err := run.Collect(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if runs, err := root.List(t.Context()); err != nil || len(runs) > 0 {
			t.Errorf("%+v, %v", runs, err)
		}
	}
}

func TestRefusalsOfAPlace(t *testing.T) {
	root, p := openPlace(t, 0)
	if _, err := root.Start(t.Context(), Spec{Path: "no-such-program-anywhere"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, err := root.Start(t.Context(), Spec{Path: "sh", Dir: "/no/such/dir"}); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if _, err := root.Attach(t.Context(), "unknown", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run that is not there: %v", err)
	}
	run := start(t, root, sh(`echo four; cat`))
	readLine(t, run.Stdout())
	again := sh("true")
	again.ID = run.ID()
	if _, err := root.Start(t.Context(), again); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a run of the same name: %v", err)
	}
	var offset *OffsetError
	if _, err := root.Attach(t.Context(), run.ID(), 99); !errors.As(err, &offset) || offset.End != 5 {
		t.Errorf("an offset behind the end: %v", err)
	}
	var version *VersionError
	old, err := Open("", Options{Place: p, Protocol: Protocol{Version: 9, Min: 9}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Attach(t.Context(), run.ID(), 0); !errors.As(err, &version) {
		t.Errorf("another version: %v", err)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	mustStop(t, run, 0)
}

// Connections break again and again while an agent prints and reads: not a byte is lost or comes twice.
func TestBrokenConnectionsLoseNothing(t *testing.T) {
	root, p := openPlace(t, 0)
	const lines = 400
	spec := helper(t, "lines", "LINES=400")
	run := start(t, root, spec)
	var want, got []byte
	for i := range lines {
		want = append(want, numbered(i)...)
	}
	buf := make([]byte, 7000)
	for n := 0; ; n++ {
		if n%8 == 2 {
			p.cut()
		}
		k, err := run.Stdout().Read(buf)
		got = append(got, buf[:k]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(got), err)
		}
	}
	if string(got) != string(want) {
		t.Errorf("%d bytes came, want %d, or others", len(got), len(want))
	}
	await(t, "its end", run.Done())
	if run.Exit() != (Exit{Known: true}) {
		t.Errorf("%+v", run.Exit())
	}
}

// Connections break again and again while an agent is written to: what it reads is neither lost nor there twice, and
// what is asked during the break is answered.
func TestBrokenConnectionsLoseNoInputAndNoRequest(t *testing.T) {
	root, p := openPlace(t, 0)
	run := start(t, root, sh(`exec cat`))
	var want strings.Builder
	for i := range 9 {
		if i%3 == 1 {
			p.cut()
		}
		turn := itoa(i)
		if err := run.Update(t.Context(), map[string]string{"turn": turn}, nil); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			p.cut()
		}
		if _, err := io.WriteString(run.Stdin(), numbered(i)); err != nil {
			t.Fatal(err)
		}
		want.WriteString(numbered(i))
		if info, err := run.Inspect(t.Context()); err != nil || info.InputEnd != int64(want.Len()) || info.Labels["turn"] != turn {
			t.Fatalf("turn %s: %+v, %v", turn, info, err)
		}
	}
	p.cut()
	if err := run.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, run.Stdout()); got != want.String() {
		t.Errorf("%d bytes came, want %d, or others", len(got), want.Len())
	}
}

// A connection breaks when as much output is on its way as may be. All of it is read before there is another one.
func TestABrokenConnectionHasRoomForMoreOutput(t *testing.T) {
	root, p := openPlace(t, 0)
	run := start(t, root, helper(t, "lines", "LINES=600")) // more than two windows
	got := make([]byte, window, 600*lineLength)
	eventually(t, "a window of output", func() bool { from, _ := run.out.inbox.reach(); return from == window })
	p.leave(errors.New("no way there"))
	p.cut()
	eventually(t, "the loss is noticed", p.missed)
	if _, err := io.ReadFull(run.Stdout(), got); err != nil {
		t.Fatal(err)
	}
	p.leave(nil)
	got = append(got, readAll(t, run.Stdout())...)
	if len(got) != 600*lineLength {
		t.Errorf("%d bytes came, want %d", len(got), 600*lineLength)
	}
}

// Who asks while there is no connection waits for one, for as long as it may.
func TestARequestWaitsForTheConnection(t *testing.T) {
	root, p := openPlace(t, 0)
	run := start(t, root, sh(`exec cat`))
	p.leave(errors.New("no way there"))
	p.cut()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := run.Inspect(ctx); !errors.Is(err, ErrGone) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with no way there: %v", err)
	}
	written := make(chan error, 1)
	go func() { _, err := io.WriteString(run.Stdin(), "hello\n"); written <- err }()
	p.leave(nil)
	if err := <-written; err != nil {
		t.Error(err)
	}
	if got := readLine(t, run.Stdout()); got != "hello" {
		t.Errorf("it read %q", got)
	}
	if err := run.Interrupt(); err != nil {
		t.Error(err)
	}
	await(t, "its end", run.Done())
}

// A supervisor that is killed is spoken for by the disk, as on this machine.
func TestPlaceSpeaksForTheDead(t *testing.T) {
	root, _ := openPlace(t, 0)
	run := start(t, root, sh(`echo last; echo words >&2; exec sleep 60`))
	readLine(t, run.Stdout())
	eventually(t, "its words", func() bool { return run.StderrTail() == "words\n" })
	if err := unix.Kill(run.Info().Supervisor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if rest := readAll(t, run.Stdout()); rest != "" {
		t.Errorf("then it says %q", rest)
	}
	await(t, "its end", run.Done())
	if run.Exit().Known {
		t.Errorf("%+v", run.Exit())
	}
	mustStop(t, run, 0)
	again := attach(t, root, run.ID(), 0)
	if got := readAll(t, again.Stdout()); got != "last\n" || again.StderrTail() != "words\n" {
		t.Errorf("from the disk %q, %q", got, again.StderrTail())
	}
	if left := survivors(t, run.ID()); len(left) > 0 {
		t.Errorf("%v are alive", left)
	}
}

// A place that is gone for good is an error that says so, at once; its runs count as ended.
func TestPlaceThatIsGone(t *testing.T) {
	root, p := openPlace(t, 0)
	run := start(t, root, sh(`echo ready; exec sleep 60`))
	readLine(t, run.Stdout())
	why := errors.Join(errors.New("somebody removed it"), ErrNoPlace)
	p.leave(why)
	p.cut()
	var lost *LostPlaceError
	if _, err := io.ReadAll(run.Stdout()); !errors.As(err, &lost) || !errors.Is(err, ErrNoPlace) {
		t.Errorf("its output ends with %v", err)
	}
	await(t, "its end", run.Done())
	mustStop(t, run, 0)
	if runs, err := root.List(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("%+v, %v", runs, err)
	}
	if _, err := root.Start(t.Context(), sh("true")); !errors.Is(err, ErrNoPlace) {
		t.Errorf("a start gives %v", err)
	}
}

// In a place the kernel is to take the agent and the proxies for want of memory, before the supervisor of a run.
func TestInAPlaceASupervisorIsTheLastToStarve(t *testing.T) {
	t.Parallel()
	adj := func(pid int) int {
		t.Helper()
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ours := adj(os.Getpid())
	want := min(ours+expendable, oomMost)
	for _, spares := range []int{0, 1} {
		root, place := openPlace(t, spares)
		run := start(t, root, sh(`cat /proc/self/oom_score_adj; sleep 600`)) // as its child has it
		if got := readLine(t, run.Stdout()); got != strconv.Itoa(want) || adj(run.PID()) != want {
			t.Errorf("what the agent started has %s, the agent %d, want %d", got, adj(run.PID()), want)
		}
		eventually(t, "the supervisor is worth what we are", func() bool { return adj(run.Info().Supervisor) == ours })
		place.mu.Lock()
		proxy := place.conns[0].cmd.Process.Pid
		place.mu.Unlock()
		if got := adj(proxy); got != want {
			t.Errorf("the proxy has %d, want %d", got, want)
		}
	}
}
