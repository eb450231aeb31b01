// Package runner manages the agents of one environment. An environment is this machine or a container. One process, the
// runner, starts agents, writes their input, collects their exits, and ends their process trees. It enforces deadlines
// and limits even while no client is connected. A run is one started agent with its processes, files and limits.
//
// Output does not pass through the runner: an agent appends its standard output to a regular file, the journal of the
// run. A client opens this file and reads it as it grows. The package has both sides: Main is the runner, Client and
// Run are the client.
//
// A directory contains the runner's socket (sock, 0600), a lock file that only one runner can hold, and a directory for
// each run:
//
//	run.json  the command and settings of the run, without secrets and environment
//	log       a line for each event: the agent's process, writes of input, times, the end
//	out       standard output. Freed output becomes a hole at the start, so offsets stay valid
//	err       the tail of standard error
//
// Outside of containers it also contains a prepared directory for the next run, so that a start creates no files.
//
// If a runner dies, agents continue, and the next runner finds them by their directories. Only their exit codes are
// lost. A runner exits when no agent has run for some time, or when nothing runs and its last client has left. The next
// start of an agent then starts a new runner.
//
// An agent's standard input is a socket pair. The agent has both ends open, so that the input survives the runner. The
// next runner gets the runner's end from the agent.
//
// The package is not a shell, a scheduler or a sandbox, and has no terminals. It needs Linux but no cgo.
package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
	"ductor/internal/runner/fork"
)

const (
	smallHeap  = 20 // GOGC after the start; collections are cheap, because the heap has only about a megabyte
	startLasts = time.Minute
	softMemory = 24 << 20 // GOMEMLIMIT in bytes
	socketFile = "sock"
	lockFile   = "lock"
	readyFD    = 3 // file descriptor of a pipe, to which the runner writes when the socket exists
)

// Main runs a runner for the directory in args (root=DIR), and returns the exit code. The runner exits when no agent
// has run for 15 minutes, or when nothing runs and no client is connected. If another runner already serves the
// directory, Main returns immediately. If Main cannot send an error to a client, it writes the error to complaints.
// Optional args are:
//   - idle=DURATION: replaces the 15 minutes
//   - program=ID: the identity of this program
//   - store=FD: the connection to the fdstore.Store of Hold
//   - lock=FD and listen=FD: the lock and the listener, after an upgrade
func Main(args []string, complaints io.Writer) int {
	reduceMemory()
	if err := serve(args); err != nil {
		fmt.Fprintln(complaints, "runner:", err)
		return 1
	}
	return 0
}

// reduceMemory makes the Go runtime use little memory. It raises the frequency of garbage collections only after the
// start. Frequent collections during the start would waste memory: at each one, the runtime creates lists of pages,
// which are larger than the collected garbage and are never freed.
func reduceMemory() {
	time.AfterFunc(startLasts, func() { debug.SetGCPercent(smallHeap) })
	debug.SetMemoryLimit(softMemory)
	runtime.GOMAXPROCS(2)
}

type arguments struct {
	root                string
	lock, listen, store int // descriptors; 0 for none
	idle                time.Duration
	program             string
}

func parseArgs(args []string) (a arguments, err error) {
	a.idle = defaultIdle
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "root":
			a.root = value
		case "idle":
			a.idle, err = time.ParseDuration(value)
		case "lock":
			a.lock, err = strconv.Atoi(value)
		case "listen":
			a.listen, err = strconv.Atoi(value)
		case "program":
			a.program = value
		case "store":
			a.store, err = strconv.Atoi(value)
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return a, fmt.Errorf("argument %q: %w", arg, err)
		}
	}
	if !filepath.IsAbs(a.root) {
		return a, fmt.Errorf("argument root=DIR: %q is not an absolute path", a.root)
	}
	return a, nil
}

func serve(args []string) error {
	// Handle signals before anything else. A runner that was just upgraded has agents, and must end them before a
	// SIGTERM ends the runner.
	signals, terminated := make(chan os.Signal, 4), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(terminated, syscall.SIGTERM)
	a, err := parseArgs(args)
	if err != nil {
		return err
	}
	_ = unix.CloseRange(readyFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) // agents must not inherit other descriptors
	s := newServer(a)
	s.runs.terminated = terminated
	if ok, err := s.dir.acquire(a.lock, a.listen); err != nil || !ok {
		return err
	}
	if s.program == "" {
		if s.program, err = programID("/proc/self/exe"); err != nil {
			return err
		}
	}
	s.children.group, _ = proctree.GroupParent("self") // on failure, agents get no control groups
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	var looking sync.WaitGroup
	looking.Go(func() { s.children.limits.Files = fork.InheritedFileLimit() })
	s.growth = newGrowthWatch(s.dir.path)
	if s.holder.exists() {
		s.prepared.state = cannotPrepare // a prepared directory would reserve space in every idle container
		s.prepareForContainer()
	}
	deaths := make(chan os.Signal, 1)
	signal.Notify(deaths, syscall.SIGCHLD)
	adoptErr := s.adoptAll() // the next runner tries again to adopt the runs for which this fails
	looking.Wait()           // InheritedFileLimit collects the exit of its own child; reap must not do it first
	s.life.Go(func() { s.growth.serve(s.life.ctx) })
	s.life.Go(func() { s.children.reap(s.life.ctx, deaths) })
	s.life.Go(s.accept)
	if a.listen == 0 {
		ready := os.NewFile(readyFD, "ready")
		_, _ = ready.Write([]byte{1}) // fails only if the client that started this runner has exited
		_ = ready.Close()
	}
	s.enforceDeadlines(signals)
	_ = s.dir.listener.Close()
	s.sweep()
	s.clients.close()
	s.files.close()
	s.life.cancel()
	s.life.Wait()
	s.prepared.remove(s.dir.path)
	return adoptErr
}

// programID returns the identity of a program's file: its device, inode, size and modification time.
func programID(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("inspect %s: %w", path, err)
	}
	return fmt.Sprintf("%x-%x-%x-%x", st.Dev, st.Ino, st.Size, st.Mtim.Nano()), nil
}

// quiesce is how long an upgrade waits for the current writes to agents.
const quiesce = 2 * time.Second

// upgrade replaces the program of this process. The new program is the file at path or, if path is empty, the content
// of program. It inherits the children and descriptors. Clients lose their connections, and reconnect through the same
// socket. First, upgrade waits until no write to an agent is in progress. If this wait takes too long, upgrade returns
// an error and changes nothing.
//
// A SIGTERM that arrives between the last check and the exec is lost. A SIGTERM that arrives between the exec and serve
// kills the runner without its agents; the next runner then adopts the agents. upgrade cannot prevent this, because a Go
// program cannot start with SIGTERM blocked.
func (s *server) upgrade(path string, args []string, program []byte) error {
	if path == "" {
		f, err := memoryFile(program)
		if err != nil {
			return err
		}
		defer f.Close()
		path = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	}
	if !s.runs.forbidIfIdle(sinceBoot()) {
		return errors.New("an agent is being started, or the runner is about to leave")
	}
	defer s.runs.allow()
	for _, a := range s.runs.all() {
		for until := time.Now().Add(quiesce); !a.in.mu.TryLock(); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				return fmt.Errorf("run %s does not accept its input", a.record.ID)
			}
		}
		defer a.in.mu.Unlock()
	}
	s.children.reaping.Lock()
	defer s.children.reaping.Unlock()
	passed, done, err := s.dir.handOver()
	if err != nil {
		return err
	}
	defer done()
	if s.holder.exists() {
		store, err := passOn("store", int(s.holder.store))
		if err != nil {
			return err
		}
		passed = append(passed, store)
	}
	args = append(commandLine(args), passed...)
	// Do not upgrade after a SIGTERM, because the runner must then end its agents and exit.
	if len(s.runs.terminated) > 0 {
		return errors.New("the runner is about to leave")
	}
	return fmt.Errorf("become %s: %w", path, syscall.Exec(path, args, os.Environ()))
}
