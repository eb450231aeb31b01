// Package runner owns the agents of one environment: one process starts them, writes their input, takes their exit, ends
// their trees, and keeps deadlines and limits while no client is there. No output passes through it. An agent's standard
// output is a regular file that the agent itself appends to, the run's journal, which a client opens and follows. The
// package is both ends: Main is the runner, Client and Run are its client.
//
// A directory holds the socket of the runner (sock, 0600), a lock that one runner holds, and a directory for each run:
//
//	run.json  what was started, without secrets. Never the environment.
//	log       what happened, one line each: the agent's process, input begun and ended, times, the end
//	out       standard output; an offset in it names a byte for good. Its head may be a hole
//	err       the last of standard error
//
// and, outside of containers, one for the next run, so that its start makes no file.
//
// A runner that dies loses exit codes and nothing else: agents run on, the next runner finds them by their directories.
// A runner leaves when no agent has run for some time, or when nothing runs and its last client has left. The next start starts
// another.
//
// Standard input is a socket of which the agent holds both ends, so that no death of ours ends it. The runner takes the
// other end from the agent when it finds the run of a dead runner.
//
// The package is NOT a shell, a scheduler or a sandbox: it knows nothing of conversations, dialects or chats, and gives no
// terminal. It needs Linux and no cgo.
package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
)

const (
	smallHeap  = 20       // percent the heap may grow: of a megabyte, not of much
	softMemory = 24 << 20 // bytes; beyond it the collector works harder
	socketFile = "sock"
	lockFile   = "lock"
	readyFD    = 3 // written to once the socket is there
)

// Main is a whole runner: it serves the directory in args (root=DIR) until no agent has run for 15 minutes, or nothing
// runs and no client is left, and returns an exit code. Where another runner serves it, it returns at once. args may
// hold another time than that (idle=DURATION), what to call this program (program=ID), where Hold keeps inputs
// (store=FD) and, after an upgrade, the lock and the listener (lock=FD, listen=FD). complaints gets what no client can
// be told.
func Main(args []string, complaints io.Writer) int {
	small()
	if err := serve(args); err != nil {
		fmt.Fprintln(complaints, "runner:", err)
		return 1
	}
	return 0
}

// small keeps this process small.
func small() {
	debug.SetGCPercent(smallHeap)
	debug.SetMemoryLimit(softMemory)
	runtime.GOMAXPROCS(2)
}

type arguments struct {
	root         string
	lock, listen int // descriptors; 0 for none
	store        store
	idle         time.Duration
	program      string
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
			var fd int
			fd, err = strconv.Atoi(value)
			a.store = store(fd)
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
	a, err := parseArgs(args)
	if err != nil {
		return err
	}
	_ = unix.CloseRange(readyFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) // what we inherited is not for agents
	s := &server{setup: setup{dir: a.root, idle: a.idle, program: a.program, store: a.store},
		children: children{byPID: map[int]*agent{}}, runs: map[string]*agent{}, conns: map[*conn]bool{},
		starting: map[string]chan struct{}{}, wakes: make(chan struct{}, 1), idleFrom: sinceBoot()}
	if ok, err := s.own(a); err != nil || !ok {
		return err
	}
	if s.program == "" {
		if s.program, err = programID("/proc/self/exe"); err != nil {
			return err
		}
	}
	s.group, _ = proctree.GroupParent("self") // agents are ended without it, too
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	var looking sync.WaitGroup
	looking.Go(func() { s.agents.files = agentsFiles() })
	s.growth = newGrowthWatch(s.dir)
	if s.store != 0 {
		s.next.state = cannotPrepare // the room ahead of a journal would be taken in each container that only waits
		s.standHeld()
	}
	var leave context.CancelFunc
	s.life, leave = context.WithCancel(context.Background())
	deaths, signals := make(chan os.Signal, 1), make(chan os.Signal, 4)
	signal.Notify(deaths, syscall.SIGCHLD)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	adoptErr := s.adoptAll() // a run that cannot be read stays for the next runner
	looking.Wait()           // before exits are taken
	s.wg.Go(func() { s.growth.serve(s.life) })
	s.wg.Go(func() { s.reap(deaths) })
	s.wg.Go(s.accept)
	if a.listen == 0 {
		ready := os.NewFile(readyFD, "ready")
		_, _ = ready.Write([]byte{1}) // who started us may be gone
		_ = ready.Close()
	}
	s.keep(signals)
	_ = s.listener.Close()
	s.sweep()
	s.closeConns()
	s.files.close()
	leave()
	s.wg.Wait()
	s.next.drop(s.dir)
	return adoptErr
}

// own makes this process the runner of the directory; false if another one is.
func (s *server) own(a arguments) (ok bool, err error) {
	if a.lock > 0 { // we were the runner before the exec
		for _, fd := range []int{a.lock, a.listen} {
			unix.CloseOnExec(fd)
		}
		s.lock = os.NewFile(uintptr(a.lock), lockFile)
		f := os.NewFile(uintptr(a.listen), socketFile)
		defer f.Close()
		l, err := net.FileListener(f)
		if err != nil {
			return false, fmt.Errorf("take up the socket: %w", err)
		}
		s.listener = l.(*net.UnixListener)
		return true, nil
	}
	s.lock, err = os.OpenFile(filepath.Join(s.dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return false, err
	}
	if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = nil
		}
		return false, err
	}
	if err := os.Remove(filepath.Join(s.dir, socketFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	path, done, err := shortPath(s.dir)
	if err != nil {
		return false, err
	}
	defer done()
	if s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
		return false, fmt.Errorf("make socket: %w", err)
	}
	s.listener.SetUnlinkOnClose(false) // the name is good only now; the next runner removes it
	return true, os.Chmod(filepath.Join(s.dir, socketFile), 0o600)
}

// shortPath names the socket through an open directory: a socket's name ends after 107 bytes.
func shortPath(dir string) (path string, done func(), err error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return "/proc/self/fd/" + strconv.Itoa(fd) + "/" + socketFile, func() { _ = unix.Close(fd) }, nil
}

// programID tells a program from its successor.
func programID(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", path, err)
	}
	return fmt.Sprintf("%x-%x-%x-%x", st.Dev, st.Ino, st.Size, st.Mtim.Nano()), nil
}

// quiesce is how long a write to an agent may hold up an upgrade.
const quiesce = 2 * time.Second

// upgrade makes this process another program, with all its children and files. Clients lose their connections and find
// the new program at the same socket. It waits for writes to agents; one that lasts is an error, and nothing changes.
// Without a path the program itself is given.
func (s *server) upgrade(path string, args []string, program []byte) error {
	if path == "" {
		f, err := memoryFile(program)
		if err != nil {
			return err
		}
		defer f.Close()
		path = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	}
	s.mu.Lock()
	busy := s.starting == nil || len(s.starting) > 0
	if !busy {
		s.starting = nil
	}
	s.mu.Unlock()
	if busy {
		return errors.New("an agent is being started")
	}
	defer func() {
		s.mu.Lock()
		s.starting = map[string]chan struct{}{}
		s.mu.Unlock()
	}()
	for _, a := range s.all() {
		for until := time.Now().Add(quiesce); !a.in.mu.TryLock(); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				return fmt.Errorf("run %s takes its input slowly", a.ID)
			}
		}
		defer a.in.mu.Unlock()
	}
	s.reaping.Lock()
	defer s.reaping.Unlock()
	f, err := s.listener.File()
	if err != nil {
		return fmt.Errorf("keep the socket: %w", err)
	}
	defer f.Close()
	for _, fd := range append(s.store.fds(), int(s.lock.Fd()), int(f.Fd())) {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keep a file: %w", err)
		}
	}
	args = append(titled(args), "root="+s.dir, fmt.Sprintf("lock=%d", s.lock.Fd()), fmt.Sprintf("listen=%d", f.Fd()))
	if s.store != 0 {
		args = append(args, storeArg(int(s.store)))
	}
	return fmt.Errorf("become %s: %w", path, syscall.Exec(path, args, os.Environ()))
}
