package runner

import (
	"bufio"
	"bytes"
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

	"ductor/internal/proctree"
)

// fakeRemote is an environment whose processes run on this machine. It can become unreachable.
type fakeRemote struct {
	t    testing.TB
	dir  string
	hold *exec.Cmd
	id   string // of the expected program
	path string

	mu       sync.Mutex
	gone     error
	crowded  bool // no process can be started
	restarts int
	conns    []*process
}

// process is a program as a connection.
type process struct {
	net.Conn
	cmd  *exec.Cmd
	once sync.Once
}

func (p *process) Close() error {
	err := p.Conn.Close()
	p.once.Do(func() { _ = p.cmd.Wait() }) // it exits at the end of its input
	return err
}

func (e *fakeRemote) Program() (id, path string) { return e.id, e.path }

func (e *fakeRemote) Dial(context.Context, Effort) (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone != nil {
		return nil, e.gone
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
	cmd := exec.Command(runnerCommand(e.t)[0], Connect, "root="+e.dir)
	if e.crowded {
		cmd = exec.Command("false")
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	p := &process{Conn: conn, cmd: cmd}
	e.conns = append(e.conns, p)
	return p, nil
}

func (e *fakeRemote) Restart(context.Context) error {
	e.stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.crowded = false
	e.restarts++
	return e.start()
}

func (e *fakeRemote) start() error {
	e.hold = exec.Command(runnerCommand(e.t)[0], Hold, "root="+e.dir, "program="+e.id)
	e.hold.Stderr = os.Stderr
	return e.hold.Start()
}

// stop ends the environment like a container engine.
func (e *fakeRemote) stop() {
	_ = e.hold.Process.Signal(unix.SIGTERM) // fails if it has exited
	_ = e.hold.Wait()
}

// disconnect breaks every connection by killing its process.
func (e *fakeRemote) disconnect() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.conns {
		_ = p.cmd.Process.Kill() // fails if it has exited
	}
	e.conns = nil
}

func (e *fakeRemote) leave(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = err
}

func openFakeRemote(t testing.TB) (*Client, *fakeRemote) {
	t.Helper()
	e := &fakeRemote{t: t, dir: t.TempDir(), id: "first"}
	if err := e.start(); err != nil {
		t.Fatal(err)
	}
	c := OpenRemote(e, 0)
	t.Cleanup(func() {
		e.leave(nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		runs, err := c.List(ctx)
		for _, run := range runs {
			err = errors.Join(err, c.Collect(ctx, run.ID))
		}
		if err = errors.Join(err, c.Close()); err != nil {
			t.Error(err)
		}
		e.stop()
	})
	return c, e
}

// numberedLine returns a line that contains its number.
func numberedLine(i int) string { return fmt.Sprintf("%06d %s\n", i, strings.Repeat("x", 90)) }

func TestRemoteRun(t *testing.T) {
	c, _ := openFakeRemote(t)
	for range 3 {
		r := start(t, c, sh(`read line; echo "got $line"; echo why >&2; exit 3`))
		write(t, r, "it\n")
		if got := readRest(t, r); got != "got it\n" {
			t.Errorf("it says %q", got)
		}
		await(t, "its end", r.Done())
		if r.Exit() != (Exit{Known: true, Code: 3}) || r.StderrTail() != "why\n" {
			t.Errorf("%+v, %q", r.Exit(), r.StderrTail())
		}
		if err := r.Collect(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if runs, err := c.List(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("%+v, %v", runs, err)
	}
}

// Programs elsewhere use tools of the client, each over its own relay, and again after the connection broke.
func TestRemoteTools(t *testing.T) {
	c, e := openFakeRemote(t)
	c.ServeTools(func(conn net.Conn) {
		defer conn.Close()
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if _, err := fmt.Fprintf(conn, "you say %s\n", lines.Text()); err != nil {
				return
			}
		}
	})
	r := start(t, c, sh("sleep 60"))
	talk := func(name string) (net.Conn, *bufio.Reader) {
		t.Helper()
		conn, err := DialTools(t.Context(), e.dir)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		for i := range 3 {
			fmt.Fprintf(conn, "%s %d\n", name, i)
			if got, err := in.ReadString('\n'); err != nil || got != fmt.Sprintf("you say %s %d\n", name, i) {
				t.Fatalf("%s hears %q, %v", name, got, err)
			}
		}
		return conn, in
	}
	one, hears := talk("one")
	two, _ := talk("two")
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(one, "still there")
	if got, err := hears.ReadString('\n'); err != nil || got != "you say still there\n" {
		t.Errorf("after another one left: %q, %v", got, err)
	}
	e.disconnect()
	if got, err := hears.ReadString('\n'); err == nil {
		t.Errorf("after the connection broke it hears %q", got)
	}
	if _, err := c.List(t.Context()); err != nil { // reconnects
		t.Fatal(err)
	}
	three, _ := talk("three")
	if err := errors.Join(three.Close(), r.Stop(t.Context(), 0)); err != nil {
		t.Error(err)
	}
}

// While no client serves tools, a program cannot connect and tries again. Otherwise its first lines would be lost.
func TestDialToolsWithoutAServer(t *testing.T) {
	c, e := openFakeRemote(t)
	r := start(t, c, sh("sleep 60"))
	if conn, err := DialTools(t.Context(), e.dir); err == nil || conn != nil || err.Error() != errNoTools.Error() {
		t.Errorf("it is connected to nobody: %v", err)
	}
	if err := r.Stop(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

func TestRemoteStartErrors(t *testing.T) {
	c, _ := openFakeRemote(t)
	if _, err := c.Start(t.Context(), Spec{Path: "no-such-program-anywhere"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, err := c.LookPath(t.Context(), "no-such-program-anywhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	if path, err := c.LookPath(t.Context(), "sh"); err != nil || !strings.HasSuffix(path, "/sh") {
		t.Errorf("sh is %q, %v", path, err)
	}
	if _, err := c.Start(t.Context(), Spec{Path: "sh", Dir: "/no/such/dir"}); err == nil ||
		errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if _, err := c.Attach(t.Context(), "unknown", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run that is not there: %v", err)
	}
	r := start(t, c, sh(`echo four; cat`))
	readLine(t, r)
	again := sh("true")
	again.ID = r.ID()
	if _, err := c.Start(t.Context(), again); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a run of the same name: %v", err)
	}
}

// Connections break repeatedly while an agent prints. No byte is lost or repeated.
func TestBrokenConnectionsLoseNoOutput(t *testing.T) {
	c, e := openFakeRemote(t)
	const lines = 20000
	r := start(t, c, sh(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do printf '%%06d %s\n' $i; i=$((i+1)); done`, lines,
		strings.Repeat("x", 90))))
	var got []byte
	buf := make([]byte, 7000)
	for n := 0; ; n++ {
		if n%40 == 2 {
			e.disconnect()
		}
		k, err := r.Stdout().Read(buf)
		got = append(got, buf[:k]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(got), err)
		}
	}
	for i := range lines {
		want := numberedLine(i)
		if !bytes.HasPrefix(got, []byte(want)) {
			t.Fatalf("line %d is %q", i, got[:min(len(got), 100)])
		}
		got = got[len(want):]
	}
	await(t, "its end", r.Done())
	if len(got) > 0 || r.Exit() != (Exit{Known: true}) {
		t.Errorf("%d bytes more, %+v", len(got), r.Exit())
	}
}

// Connections break repeatedly during writes to an agent. No input is lost or repeated, and requests during a break are
// answered.
func TestBrokenConnectionsLoseNoInputAndNoRequest(t *testing.T) {
	c, e := openFakeRemote(t)
	r := start(t, c, sh(`exec cat`))
	var want strings.Builder
	for i := range 9 {
		if i%3 == 1 {
			e.disconnect()
		}
		turn := strconv.Itoa(i)
		if err := r.Limit(t.Context(), Limits{Grace: time.Duration(i+1) * time.Second}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			e.disconnect()
		}
		write(t, r, numberedLine(i))
		want.WriteString(numberedLine(i))
		if info, err := r.Inspect(t.Context()); err != nil || info.InputEnd != int64(want.Len()) ||
			info.Limits.Grace != time.Duration(i+1)*time.Second || !info.Attached {
			t.Fatalf("turn %s: %+v, %v", turn, info, err)
		}
	}
	e.disconnect()
	if err := r.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if got := readRest(t, r); got != want.String() {
		t.Errorf("%d bytes came, want %d, or others", len(got), want.Len())
	}
}

// A request without a connection waits for one, at most until its context ends.
func TestARequestWaitsForTheConnection(t *testing.T) {
	c, e := openFakeRemote(t)
	r := start(t, c, sh(`exec cat`))
	e.leave(errors.New("no way there"))
	e.disconnect()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.Inspect(ctx); err == nil || ctx.Err() == nil { // the error may be from the last attempt
		t.Errorf("with no way there: %v", err)
	}
	written := make(chan error, 1)
	go func() { _, err := io.WriteString(r.Stdin(), "hello\n"); written <- err }()
	e.leave(nil)
	if err := <-written; err != nil {
		t.Error(err)
	}
	if got := readLine(t, r); got != "hello" {
		t.Errorf("it read %q", got)
	}
	if err := r.Interrupt(); err != nil {
		t.Error(err)
	}
	await(t, "its end", r.Done())
}

// A killed runner is restarted, and the turn continues. Processes that were orphaned meanwhile are ended with the run.
func TestKilledRemoteRunnerIsRestarted(t *testing.T) {
	c, _ := openFakeRemote(t)
	r := start(t, c, sh(escape+`echo ready; while read line; do echo "got $line"; done; echo bye`))
	id, ok := proctree.LookUp(number(t, readLine(t, r)))
	if readLine(t, r) != "ready" || !ok {
		t.Fatal("no process escaped")
	}
	for range 2 {
		killRunner(t, c)
		write(t, r, "more\n")
		if got := readLine(t, r); got != "got more" {
			t.Errorf("%q", got)
		}
	}
	if err := r.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if got := readRest(t, r); got != "bye\n" {
		t.Errorf("%q", got)
	}
	await(t, "its end", r.Done())
	stop(t, r, 0)
	eventually(t, "what escaped is ended", func() bool { return !id.Running() })
}

// An environment that no longer exists is reported immediately, and its runs count as ended.
func TestMissingEnvironment(t *testing.T) {
	c, e := openFakeRemote(t)
	r := start(t, c, sh(`echo ready; exec sleep 600`))
	readLine(t, r)
	e.leave(errors.Join(errors.New("a user removed it"), ErrNoEnvironment))
	e.disconnect()
	var lost *LostEnvironmentError
	if _, err := io.ReadAll(r.Stdout()); !errors.As(err, &lost) || !errors.Is(err, ErrNoEnvironment) {
		t.Errorf("its output ends with %v", err)
	}
	await(t, "its end", r.Done())
	if err := r.Stop(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if runs, err := c.List(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("%+v, %v", runs, err)
	}
	if _, err := c.Start(t.Context(), sh("true")); !errors.Is(err, ErrNoEnvironment) {
		t.Errorf("a start gives %v", err)
	}
}

// If no process can be started to reach the runner, Stop restarts the environment.
func TestStopRestartsAFullEnvironment(t *testing.T) {
	c, e := openFakeRemote(t)
	spec := sh(`trap '' TERM; echo ready; while :; do sleep 600; done`)
	spec.Limits.Grace = 100 * time.Millisecond
	r := start(t, c, spec)
	readLine(t, r)
	e.mu.Lock()
	e.crowded = true
	e.mu.Unlock()
	e.disconnect()
	stop(t, r, time.Second)
	if e.restarts != 1 {
		t.Errorf("it was started anew %d times", e.restarts)
	}
	await(t, "its end", r.Done())
}

// An environment that must stop ends its agents first and reports how they ended.
func TestStoppingEnvironmentEndsItsAgents(t *testing.T) {
	c, e := openFakeRemote(t)
	spec := sh(`trap '' TERM; echo ready; while :; do sleep 600; done`)
	spec.Limits.Grace = 100 * time.Millisecond
	r := start(t, c, spec)
	readLine(t, r)
	e.stop()
	await(t, "its end", r.Done())
	if got := r.Exit(); got.By != ByTerminated {
		t.Errorf("%+v", got)
	}
	if left := processesOfRun(t, r.ID()); len(left) > 0 {
		t.Errorf("%v run", left)
	}
	if err := e.start(); err != nil {
		t.Fatal(err)
	}
}

// A client upgrades the runner to its own build. Runs continue.
func TestRemoteUpgrade(t *testing.T) {
	c, e := openFakeRemote(t)
	r := start(t, c, sh(`echo ready; read line; echo "got $line"; exit 7`))
	readLine(t, r)
	before, _ := runnerOf(c)
	next := OpenRemote(&fakeRemote{t: t, dir: e.dir, id: "second", path: runnerCommand(t)[0]}, 0)
	defer next.Close()
	if err := next.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := next.connect(t.Context(), AsIs)
	if err != nil {
		t.Fatal(err)
	}
	hello, err := l.ask(t.Context(), request{Op: opHello}, nil)
	if err != nil || hello.Program != "second" || hello.PID != before.PID {
		t.Errorf("%+v, %v", hello, err)
	}
	write(t, r, "it\n")
	if got := readRest(t, r); got != "got it\n" || r.Exit() != (Exit{Known: true, Code: 7}) {
		t.Errorf("%q, %+v", got, r.Exit())
	}
}

// If memory is short, the kernel kills agents and connection processes before the runner.
func TestRemoteRunnerIsTheLastToBeOOMKilled(t *testing.T) {
	adj := func(pid int) int {
		t.Helper()
		return number(t, readFile(t, fmt.Sprintf("/proc/%d/oom_score_adj", pid)))
	}
	own := adj(os.Getpid())
	want := min(own+expendableBy, maxOOMScoreAdj)
	c, e := openFakeRemote(t)
	r := start(t, c, sh(`cat /proc/self/oom_score_adj; sleep 600`)) // the child's value
	if got := number(t, readLine(t, r)); got != want || adj(r.PID()) != want {
		t.Errorf("what the agent started has %d, the agent %d, want %d", got, adj(r.PID()), want)
	}
	id, _ := runnerOf(c)
	if got := adj(id.PID); got != own {
		t.Errorf("the runner has %d, want %d", got, own)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if got := adj(e.conns[0].cmd.Process.Pid); got != want {
		t.Errorf("what carries the connection has %d, want %d", got, want)
	}
}

// Two clients read the same output as it grows.
func TestTwoRemoteReaders(t *testing.T) {
	c, e := openFakeRemote(t)
	r := start(t, c, sh(`echo first; while read line; do echo "got $line"; done`))
	other := OpenRemote(&fakeRemote{t: t, dir: e.dir}, 0)
	defer other.Close()
	q, err := other.Follow(t.Context(), r.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "got 1", "got 2", "got 3"} {
		for _, run := range []*Run{r, q} {
			if got := readLine(t, run); got != want {
				t.Errorf("%q", got)
			}
		}
		write(t, r, nextLine(want)+"\n")
	}
}

// nextLine returns the line to write after a line.
func nextLine(line string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(line, "got "))
	return strconv.Itoa(n + 1)
}

// A client that accepts no more data does not prevent other clients from learning about the end of an agent.
func TestHangingClientDoesNotBlockOthers(t *testing.T) {
	c, e := openFakeRemote(t)
	const size = 4 << 20
	r := start(t, c, sh(fmt.Sprintf(`yes 0123456789abcde | head -c %d; read line; exit 3`, size)))
	if _, err := io.ReadFull(r.Stdout(), make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	stuck := OpenRemote(&fakeRemote{t: t, dir: e.dir}, 0)
	l, err := stuck.connect(t.Context(), AsIs)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock() // blocks the receiver
	defer func() {
		l.mu.Unlock()
		if err := stuck.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 32 {
		if err := l.send(request{Op: opPull, Run: r.ID(), Length: maxPull}, nil); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond) // replies are being sent
	write(t, r, "go\n")
	await(t, "its end", r.Done())
	if got := readRest(t, r); got != "" || r.Exit() != (Exit{Known: true, Code: 3}) {
		t.Errorf("%q, %+v", got, r.Exit())
	}
	stop(t, r, 0)
}
