package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// holdGrace is how long a container that is told to end waits for its runner. Container engines wait ten seconds.
	holdGrace = 8 * time.Second
	// holdPause is how long a runner must have lived to be started again at once.
	holdPause = time.Second
	// storeFD is where a runner that Hold started has its connection to the kept inputs.
	storeFD = 4
	// connectFor is how long Connect looks for a runner: the one before it may have been killed.
	connectFor = 10 * time.Second
	// readyThreads is how many threads a held runner has from the start: it must not die where there is no room for
	// more.
	readyThreads = 12
)

// The verbs of Inside.
const (
	// Hold is the first process of a container, with which the kernel ends all others: it starts a runner, and another
	// when that dies, and takes the exit of all that is left to it, until it is told to end.
	Hold = "hold"
	// Connect is the process by which a client reaches the runner from outside: it carries bytes between its standard
	// input and output and the runner.
	Connect = "connect"
	run     = "run" // Main
)

// Inside does what a program inside of a container is for, and what Small wants of one beside ductor. args are a verb
// and root=DIR; Hold takes program=ID too, see Main. It returns an exit code.
func Inside(args []string, in io.Reader, out, complaints io.Writer) int {
	small()
	err := fmt.Errorf("%q is no verb", args[0])
	switch verb, args := args[0], args[1:]; verb {
	case Hold:
		err = hold(args)
	case Connect:
		err = connect(args, in, out)
	case run:
		err = serve(args)
	case versionVerb:
		_, err = fmt.Fprintln(out, Version)
	}
	if err != nil {
		fmt.Fprintln(complaints, args[0]+":", err)
		return 1
	}
	return 0
}

func hold(args []string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	inputs := keptInputs{files: map[string]int{}}
	runner, began := 0, time.Time{}
	var again, over <-chan time.Time
	for {
		if runner == 0 && over == nil && again == nil {
			began = time.Now()
			var err error
			if runner, err = startHeld(args, &inputs); err != nil { // there is no room for it now
				runner, again = 0, time.After(holdPause)
			}
		}
		select {
		case <-again:
			again = nil
		case <-over:
			return nil
		case sig := <-signals:
			if sig != syscall.SIGCHLD && over == nil {
				over = time.After(holdGrace)
				if runner != 0 {
					_ = unix.Kill(runner, unix.SIGTERM)
				}
			}
		}
		if reapAll(runner) {
			runner = 0
			again = time.After(holdPause - time.Since(began))
		}
		if runner == 0 && over != nil {
			return nil
		}
	}
}

// startHeld starts a runner, and serves it the inputs.
func startHeld(args []string, inputs *keptInputs) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("make a socket: %w", err)
	}
	defer unix.Close(pair[1])
	pid, err = syscall.ForkExec("/proc/self/exe", append(append(titled([]string{run}), args...), storeArg(storeFD)),
		&syscall.ProcAttr{
			Dir: "/", Env: os.Environ(), Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), null.Fd(), uintptr(pair[1])},
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
	if err != nil {
		return 0, errors.Join(fmt.Errorf("start a runner: %w", err), unix.Close(pair[0]))
	}
	go inputs.serve(pair[0]) // it ends with the runner
	return pid, nil
}

// reapAll takes every exit there is, and says whether that of a process was among them.
func reapAll(pid int) (found bool) {
	for {
		got, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || got <= 0 {
			return found
		}
		found = found || got == pid
	}
}

func connect(args []string, in io.Reader, out io.Writer) error {
	a, err := parseArgs(args)
	if err != nil {
		return err
	}
	if adj := expendable(); adj != nil {
		_ = os.WriteFile(oomFile, adj, 0) // else it is as good as the runner
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectFor)
	defer cancel()
	conn, err := dialSocket(ctx, a.root)
	for ; err != nil; conn, err = dialSocket(ctx, a.root) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("connect to the runner: %w", err)
		case <-time.After(10 * connectLook):
		}
	}
	signal.Ignore(syscall.SIGTERM) // when the container ends, the runner has something to say first
	go func() {                    // it ends with the process at the latest
		_, _ = io.Copy(conn, in)
		_ = conn.Close() // the client left
	}()
	_, err = io.Copy(out, conn)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// In a container, which may have little memory, the kernel is to take anything before the runner, which can say what
// was taken. So agents are worth more to it, by this many thousandths of the memory there is. See
// proc_pid_oom_score_adj(5).
const (
	expendableBy = 50
	oomMost      = 1000
	oomFile      = "/proc/self/oom_score_adj"
)

// expendable is the oom_score_adj of what may be killed before this process; nil where that cannot be known.
func expendable() []byte {
	raw, err := os.ReadFile(oomFile)
	if err != nil {
		return nil
	}
	own, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil
	}
	return strconv.AppendInt(nil, int64(min(own+expendableBy, oomMost)), 10)
}

// standHeld prepares a runner for a container: clients there cannot open files, and a thread that is not to be had
// would be its end.
func (s *server) standHeld() {
	if w, err := newWatcher(); err == nil { // else outputs are looked at all the time
		s.files.watcher = w
		s.wg.Go(w.serve)
	}
	s.agents.oom = expendable()
	s.inputs, _ = s.store.all() // what is not told is missed by runs of the runner before us alone
	var there, all sync.WaitGroup
	there.Add(readyThreads)
	for range readyThreads {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			there.Done()
			there.Wait()
		})
	}
	all.Wait()
}

func (a *announcer) close() {
	if a.watcher != nil {
		a.watcher.close()
	}
}

// memoryFile is a file of a program that is on no disk.
func memoryFile(program []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("ductor-runner", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // a kernel before 6.3
		fd, err = unix.MemfdCreate("ductor-runner", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "program")
	if _, err := f.Write(program); err != nil {
		return nil, errors.Join(fmt.Errorf("keep a program: %w", err), f.Close())
	}
	return f, nil
}
