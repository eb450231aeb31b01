package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const stderrKept = 8 << 10

// hostProcess is a program started by Host. Two goroutines serve it until it exited and its standard
// error ended; Stop brings both about.
type hostProcess struct {
	pid    int
	in     *os.File
	out    *drainReader
	errors *drainReader
	stderr tail

	tree    *procTree
	stopSem chan struct{} // held by the Stop that works on the tree
	gone    bool          // under stopSem: a look found no process

	mu     sync.Mutex
	exited bool // under mu: the program's number may be another's from now on
	exit   ExitStatus
	done   chan struct{}
}

func newHostProcess(h *Host, child *exec.Cmd, p pipes, run string) *hostProcess {
	hp := &hostProcess{
		pid: child.Process.Pid, in: p.in,
		out: newDrainReader(p.out), errors: newDrainReader(p.err), stderr: tail{keep: stderrKept},
		stopSem: make(chan struct{}, 1), done: make(chan struct{}),
	}
	id := procID{pid: hp.pid}
	if stat, ok := readProc(hp.pid); ok { // always: nobody has reaped it
		id = stat.procID
	}
	hp.tree = newProcTree(id, run)
	go func() { _, _ = io.CopyBuffer(&hp.stderr, hp.errors, make([]byte, 1<<10)) }() // ends with the pipe; a tail has no errors
	go hp.wait(h, child)
	return hp
}

// wait takes the program's exit status and closes done.
func (p *hostProcess) wait(h *Host, child *exec.Cmd) {
	// Without reaping first: until exited is set, the number cannot become another process's.
	awaitExit(p.pid)
	p.mu.Lock()
	p.exited = true
	p.mu.Unlock()
	p.out.programExited()
	p.errors.programExited()
	_ = child.Wait() // its outcome is in ProcessState
	h.forget(p.pid)
	_ = p.in.Close() // frees a writer that a grandchild would keep waiting
	<-p.errors.caught
	p.exit = exitStatus(child.ProcessState)
	close(p.done)
}

func exitStatus(state *os.ProcessState) ExitStatus {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return ExitStatus{Code: -int(ws.Signal()), Signal: true}
	}
	return ExitStatus{Code: state.ExitCode()}
}

func (p *hostProcess) PID() int              { return p.pid }
func (p *hostProcess) Stdin() io.WriteCloser { return p.in }
func (p *hostProcess) Stdout() io.Reader     { return p.out }
func (p *hostProcess) StderrTail() string    { return p.stderr.String() }
func (p *hostProcess) Done() <-chan struct{} { return p.done }
func (p *hostProcess) Exit() ExitStatus      { return p.exit }

func (p *hostProcess) Interrupt() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited {
		return fmt.Errorf("interrupt process %d: %w", p.pid, os.ErrProcessDone)
	}
	if err := unix.Kill(-p.pid, unix.SIGINT); err != nil {
		return fmt.Errorf("interrupt process %d: %w", p.pid, err)
	}
	return nil
}

func (p *hostProcess) Stop(ctx context.Context, grace time.Duration) error {
	p.stopSem <- struct{}{} // whoever holds it is bound by its own grace
	defer func() { <-p.stopSem }()
	if p.gone {
		return nil
	}
	if err := p.tree.end(ctx, grace); err != nil {
		return fmt.Errorf("stop process %d: %w", p.pid, err)
	}
	p.gone = true
	<-p.done // the program is dead: this takes as long as reading its last words
	return nil
}

// pipeBytes is how much lies in a pipe unread.
func pipeBytes(f *os.File) int {
	n := 0
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return max(n, 0)
}
