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

// elsewhere is an environment whose processes are those of this machine. It can go away.
type elsewhere struct {
	t    testing.TB
	dir  string
	hold *exec.Cmd
	id   string // of the program that is wanted
	path string

	mu       sync.Mutex
	gone     error
	crowded  bool // nothing can be started
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
	p.once.Do(func() { _ = p.cmd.Wait() }) // it ends with its input
	return err
}

func (e *elsewhere) Program() (id, path string) { return e.id, e.path }

func (e *elsewhere) Dial(context.Context, Effort) (net.Conn, error) {
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
	cmd := exec.Command(self(e.t)[0], Connect, "root="+e.dir)
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

func (e *elsewhere) Restart(context.Context) error {
	e.stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.crowded = false
	e.restarts++
	return e.start()
}

func (e *elsewhere) start() error {
	e.hold = exec.Command(self(e.t)[0], Hold, "root="+e.dir, "program="+e.id)
	e.hold.Stderr = os.Stderr
	return e.hold.Start()
}

// stop ends the environment as a container engine does.
func (e *elsewhere) stop() {
	_ = e.hold.Process.Signal(unix.SIGTERM) // it may be gone
	_ = e.hold.Wait()
}

// cut breaks every connection by killing what carries it.
func (e *elsewhere) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.conns {
		_ = p.cmd.Process.Kill() // it may be gone
	}
	e.conns = nil
}

func (e *elsewhere) leave(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = err
}

func openElsewhere(t testing.TB) (*Client, *elsewhere) {
	t.Helper()
	e := &elsewhere{t: t, dir: t.TempDir(), id: "first"}
	if err := e.start(); err != nil {
		t.Fatal(err)
	}
	c := OpenRemote(e)
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

// numbered is a line that tells its number.
func numbered(i int) string { return fmt.Sprintf("%06d %s\n", i, strings.Repeat("x", 90)) }

func TestARunElsewhere(t *testing.T) {
	c, _ := openElsewhere(t)
	for range 3 {
		r := start(t, c, sh(`read line; echo "got $line"; echo why >&2; exit 3`))
		write(t, r, "it\n")
		if got := rest(t, r); got != "got it\n" {
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

// Programs elsewhere talk to tools of the client, each over a relay of its own, and again after the connection broke.
func TestToolsForProgramsElsewhere(t *testing.T) {
	c, e := openElsewhere(t)
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
	e.cut()
	if got, err := hears.ReadString('\n'); err == nil {
		t.Errorf("after the connection broke it hears %q", got)
	}
	if _, err := c.List(t.Context()); err != nil { // connects again
		t.Fatal(err)
	}
	three, _ := talk("three")
	if err := errors.Join(three.Close(), r.Stop(t.Context(), 0)); err != nil {
		t.Error(err)
	}
}

// While no client serves tools, a program is not connected: it tries again, where its first words would be lost.
func TestAProgramElsewhereWaitsForTools(t *testing.T) {
	c, e := openElsewhere(t)
	r := start(t, c, sh("sleep 60"))
	if conn, err := DialTools(t.Context(), e.dir); err == nil || conn != nil || err.Error() != errNoTools.Error() {
		t.Errorf("it is connected to nobody: %v", err)
	}
	if err := r.Stop(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeStartedElsewhere(t *testing.T) {
	c, _ := openElsewhere(t)
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
	line(t, r)
	again := sh("true")
	again.ID = r.ID()
	if _, err := c.Start(t.Context(), again); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a run of the same name: %v", err)
	}
}

// Connections break again and again while an agent prints: not a byte is lost or comes twice.
func TestBrokenConnectionsLoseNoOutput(t *testing.T) {
	c, e := openElsewhere(t)
	const lines = 20000
	r := start(t, c, sh(fmt.Sprintf(`i=0; while [ $i -lt %d ]; do printf '%%06d %s\n' $i; i=$((i+1)); done`, lines,
		strings.Repeat("x", 90))))
	var got []byte
	buf := make([]byte, 7000)
	for n := 0; ; n++ {
		if n%40 == 2 {
			e.cut()
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
		want := numbered(i)
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

// Connections break again and again while an agent is written to: what it reads is neither lost nor there twice, and
// what is asked during the break is answered.
func TestBrokenConnectionsLoseNoInputAndNoRequest(t *testing.T) {
	c, e := openElsewhere(t)
	r := start(t, c, sh(`exec cat`))
	var want strings.Builder
	for i := range 9 {
		if i%3 == 1 {
			e.cut()
		}
		turn := strconv.Itoa(i)
		if err := r.Limit(t.Context(), Limits{Grace: time.Duration(i+1) * time.Second}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 {
			e.cut()
		}
		write(t, r, numbered(i))
		want.WriteString(numbered(i))
		if info, err := r.Inspect(t.Context()); err != nil || info.InputEnd != int64(want.Len()) ||
			info.Limits.Grace != time.Duration(i+1)*time.Second || !info.Attached {
			t.Fatalf("turn %s: %+v, %v", turn, info, err)
		}
	}
	e.cut()
	if err := r.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if got := rest(t, r); got != want.String() {
		t.Errorf("%d bytes came, want %d, or others", len(got), want.Len())
	}
}

// Who asks while there is no connection waits for one, for as long as it may.
func TestARequestWaitsForTheConnection(t *testing.T) {
	c, e := openElsewhere(t)
	r := start(t, c, sh(`exec cat`))
	e.leave(errors.New("no way there"))
	e.cut()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := r.Inspect(ctx); err == nil || ctx.Err() == nil { // the error may be that of the last try
		t.Errorf("with no way there: %v", err)
	}
	written := make(chan error, 1)
	go func() { _, err := io.WriteString(r.Stdin(), "hello\n"); written <- err }()
	e.leave(nil)
	if err := <-written; err != nil {
		t.Error(err)
	}
	if got := line(t, r); got != "hello" {
		t.Errorf("it read %q", got)
	}
	if err := r.Interrupt(); err != nil {
		t.Error(err)
	}
	await(t, "its end", r.Done())
}

// A runner that is killed is started again, and the turn goes on. What was orphaned meanwhile is ended with the run.
func TestARunnerElsewhereIsKilled(t *testing.T) {
	c, _ := openElsewhere(t)
	r := start(t, c, sh(escape+`echo ready; while read line; do echo "got $line"; done; echo bye`))
	id, ok := proctree.LookUp(number(t, line(t, r)))
	if line(t, r) != "ready" || !ok {
		t.Fatal("no process escaped")
	}
	for range 2 {
		kill9(t, c)
		write(t, r, "more\n")
		if got := line(t, r); got != "got more" {
			t.Errorf("%q", got)
		}
	}
	if err := r.Stdin().Close(); err != nil {
		t.Fatal(err)
	}
	if got := rest(t, r); got != "bye\n" {
		t.Errorf("%q", got)
	}
	await(t, "its end", r.Done())
	stop(t, r, 0)
	eventually(t, "what escaped is ended", func() bool { return !id.Running() })
}

// An environment that is gone for good is an error that says so, at once; its runs count as ended.
func TestAnEnvironmentThatIsGone(t *testing.T) {
	c, e := openElsewhere(t)
	r := start(t, c, sh(`echo ready; exec sleep 600`))
	line(t, r)
	e.leave(errors.Join(errors.New("a user removed it"), ErrNoEnvironment))
	e.cut()
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

// Where nothing can be started to reach the runner, a stop starts the environment anew.
func TestAStopWhereNothingCanBeStarted(t *testing.T) {
	c, e := openElsewhere(t)
	spec := sh(`trap '' TERM; echo ready; while :; do sleep 600; done`)
	spec.Limits.Grace = 100 * time.Millisecond
	r := start(t, c, spec)
	line(t, r)
	e.mu.Lock()
	e.crowded = true
	e.mu.Unlock()
	e.cut()
	stop(t, r, time.Second)
	if e.restarts != 1 {
		t.Errorf("it was started anew %d times", e.restarts)
	}
	await(t, "its end", r.Done())
}

// An environment that is told to end ends its agents first, and says how.
func TestAnEnvironmentEnds(t *testing.T) {
	c, e := openElsewhere(t)
	spec := sh(`trap '' TERM; echo ready; while :; do sleep 600; done`)
	spec.Limits.Grace = 100 * time.Millisecond
	r := start(t, c, spec)
	line(t, r)
	e.stop()
	await(t, "its end", r.Done())
	if got := r.Exit(); got.By != ByTerminated {
		t.Errorf("%+v", got)
	}
	if left := alive(t, r.ID()); len(left) > 0 {
		t.Errorf("%v run", left)
	}
	if err := e.start(); err != nil {
		t.Fatal(err)
	}
}

// A client brings its own build of the runner along. Runs live on under it.
func TestAnUpgradeElsewhere(t *testing.T) {
	c, e := openElsewhere(t)
	r := start(t, c, sh(`echo ready; read line; echo "got $line"; exit 7`))
	line(t, r)
	before, _ := runnerOf(c)
	next := OpenRemote(&elsewhere{t: t, dir: e.dir, id: "second", path: self(t)[0]})
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
	if got := rest(t, r); got != "got it\n" || r.Exit() != (Exit{Known: true, Code: 7}) {
		t.Errorf("%q, %+v", got, r.Exit())
	}
}

// The kernel is to take an agent and what carries connections for want of memory before the runner.
func TestARunnerElsewhereIsTheLastToStarve(t *testing.T) {
	adj := func(pid int) int {
		t.Helper()
		return number(t, readFile(t, fmt.Sprintf("/proc/%d/oom_score_adj", pid)))
	}
	own := adj(os.Getpid())
	want := min(own+expendableBy, maxOOMScoreAdj)
	c, e := openElsewhere(t)
	r := start(t, c, sh(`cat /proc/self/oom_score_adj; sleep 600`)) // as its child has it
	if got := number(t, line(t, r)); got != want || adj(r.PID()) != want {
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
func TestTwoReadElsewhere(t *testing.T) {
	c, e := openElsewhere(t)
	r := start(t, c, sh(`echo first; while read line; do echo "got $line"; done`))
	other := OpenRemote(&elsewhere{t: t, dir: e.dir})
	defer other.Close()
	q, err := other.Follow(t.Context(), r.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "got 1", "got 2", "got 3"} {
		for _, run := range []*Run{r, q} {
			if got := line(t, run); got != want {
				t.Errorf("%q", got)
			}
		}
		write(t, r, nextOf(want)+"\n")
	}
}

// nextOf is what to write after a line.
func nextOf(line string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(line, "got "))
	return strconv.Itoa(n + 1)
}

// A client that takes no bytes any more does not keep the end of an agent from others.
func TestAClientThatHangs(t *testing.T) {
	c, e := openElsewhere(t)
	const size = 4 << 20
	r := start(t, c, sh(fmt.Sprintf(`yes 0123456789abcde | head -c %d; read line; exit 3`, size)))
	if _, err := io.ReadFull(r.Stdout(), make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	stuck := OpenRemote(&elsewhere{t: t, dir: e.dir})
	l, err := stuck.connect(t.Context(), AsIs)
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock() // who receives hangs
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
	time.Sleep(100 * time.Millisecond) // the answers are on their way
	write(t, r, "go\n")
	await(t, "its end", r.Done())
	if got := rest(t, r); got != "" || r.Exit() != (Exit{Known: true, Code: 3}) {
		t.Errorf("%q, %+v", got, r.Exit())
	}
	stop(t, r, 0)
}
