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

	"ductor/internal/runner/fdstore"
	"ductor/internal/runner/fork"
	"ductor/internal/runner/inotify"
)

const (
	// holdGrace is how long a stopping container waits for its runner to exit. Container engines kill the container
	// after ten seconds.
	holdGrace = 8 * time.Second
	// holdPause is the minimum interval between two starts of a runner.
	holdPause = time.Second
	// storeFD is the descriptor of the connection to the fdstore.Store. Hold passes the descriptor to each runner that
	// it starts.
	storeFD = 4
	// connectFor is how long Connect tries to reach a runner. Several attempts are necessary if Hold is restarting the
	// runner.
	connectFor = 10 * time.Second
	// readyThreads is the number of threads that a runner in a container creates when it starts. If a thread were
	// needed later and the container had reached its process limit, the Go runtime would abort the runner.
	readyThreads = 12
)

// Commands of the small runner program: the first argument of Inside.
const (
	// Hold makes the program the first process of a container. It starts a runner, restarts a dead runner, and reaps
	// orphaned processes, until SIGTERM or SIGINT. Its exit ends the container.
	Hold = "hold"
	// Connect connects a client outside of the container to the runner: it copies bytes between the runner's socket and
	// its own standard input and output.
	Connect = "connect"
	run     = "run" // starts a runner; see Main
)

// Inside is the main function of the small runner program. This program runs in containers, and on this machine if
// ductor uses Small. args consists of a command and root=DIR. The command Hold also accepts program=ID; see Main.
// Inside returns the exit code.
func Inside(args []string, in io.Reader, out, complaints io.Writer) int {
	reduceMemory()
	err := fmt.Errorf("%q is not a verb", args[0])
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
	inputs := fdstore.Store{}
	runner, began := 0, time.Time{}
	var again, over <-chan time.Time
	for {
		if runner == 0 && over == nil && again == nil {
			began = time.Now()
			var err error
			if runner, err = startHeld(args, &inputs); err != nil { // out of memory, or at the limit of processes
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

// startHeld starts a runner and connects it to the Store. The runner gets the descriptors that the previous runner
// stored there, and later stores its own descriptors.
func startHeld(args []string, inputs *fdstore.Store) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("create a socket: %w", err)
	}
	defer unix.Close(pair[1])
	pid, err = syscall.ForkExec("/proc/self/exe", append(append(commandLine([]string{run}), args...),
		"store="+strconv.Itoa(storeFD)),
		&syscall.ProcAttr{
			Dir: "/", Env: os.Environ(), Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), null.Fd(), uintptr(pair[1])},
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
	if err != nil {
		return 0, errors.Join(fmt.Errorf("start a runner: %w", err), unix.Close(pair[0]))
	}
	go inputs.Serve(pair[0]) // returns when the runner exits
	return pid, nil
}

// reapAll reaps all exited children. It reports whether pid was among them.
func reapAll(pid int) (found bool) {
	for {
		got, _ := reapChild()
		if got <= 0 {
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
		_ = os.WriteFile(fork.OOMFile, adj, 0) // on failure, the kernel may kill the runner before this process
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectFor)
	defer cancel()
	conn, err := dialSocket(ctx, a.root)
	for ; err != nil; conn, err = dialSocket(ctx, a.root) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("connect to the runner: %w", err)
		case <-time.After(10 * connectRetry):
		}
	}
	signal.Ignore(syscall.SIGTERM) // when the container stops, still copy the runner's last messages
	go func() {                    // runs until the process exits
		_, _ = io.Copy(conn, in)
		_ = conn.Close() // closing the connection also ends the copying in the other direction
	}()
	_, err = io.Copy(out, conn)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// If a container runs out of memory, the kernel should kill an agent and not the runner. The runner can then report the
// killed agent. Therefore the oom_score_adj of agents is higher than the runner's by expendableBy. See
// proc_pid_oom_score_adj(5).
const (
	expendableBy   = 50
	maxOOMScoreAdj = 1000
)

// expendable returns the oom_score_adj for processes that the kernel should kill before this process. It returns nil if
// the score of this process is unknown.
func expendable() []byte {
	raw, _ := os.ReadFile(fork.OOMFile) // the content is empty after an error
	own, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil
	}
	return strconv.AppendInt(nil, int64(min(own+expendableBy, maxOOMScoreAdj)), 10)
}

// holder is the process that started a runner in a container; see Hold. The runner writes the agents' input to sockets.
// The holder stores descriptors of these sockets, so that the next runner can continue to write.
type holder struct {
	store  fdstore.Client
	inputs map[string]int // descriptors that the previous runner stored, by run ID
}

// exists reports whether Hold started this runner.
func (h holder) exists() bool { return h.store != 0 }

// prepareForContainer prepares a runner in a container. Clients outside cannot open the output files, so the runner
// reads the files and sends the output.
func (s *server) prepareForContainer() {
	if w, err := inotify.New(); err == nil { // on failure, outputs are polled
		s.files.watcher = w
		s.life.Go(w.Serve)
	}
	s.children.limits.OOMScoreAdj = expendable()
	s.holder.inputs, _ = s.holder.store.All() // on failure, the agents of the previous runner have no input
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

func (a *writeWatch) close() {
	if a.watcher != nil {
		a.watcher.Close()
	}
}

func memoryFile(program []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("ductor-runner", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // kernels before 6.3 do not support MFD_EXEC
		fd, err = unix.MemfdCreate("ductor-runner", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("create a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "program")
	if _, err := f.Write(program); err != nil {
		return nil, errors.Join(fmt.Errorf("store a program: %w", err), f.Close())
	}
	return f, nil
}
