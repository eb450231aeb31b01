package supervisor

import (
	"ductor/internal/proctree"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// agent is the one program a supervisor runs.
type agent struct {
	id  proctree.ID
	in  *os.File
	out *drainReader
	err *drainReader

	mu     sync.Mutex
	exited bool // under mu: the program's number may be another's from now on
	status syscall.WaitStatus
	dead   chan struct{} // closed when the agent's exit status was taken
	alone  chan struct{} // closed when no descendant is left either
}

// startAgent starts the program, in a session of its own. It is in the group from its first moment, where the kernel can
// do that. The caller's goroutine stays on its thread from here on, and must live as long as we do: the kernel kills the
// agent when the thread that made it ends, which is how it dies with us.
func startAgent(s Spec, in proctree.Group) (*agent, error) {
	ends, err := openPipes()
	if err != nil {
		return nil, err
	}
	a := &agent{
		in: os.NewFile(uintptr(ends.in[1]), "stdin"), dead: make(chan struct{}), alone: make(chan struct{}),
		out: newDrainReader(os.NewFile(uintptr(ends.out[0]), "stdout")),
		err: newDrainReader(os.NewFile(uintptr(ends.err[0]), "stderr")),
	}
	runtime.LockOSThread()
	pid, err := fork(s, in, ends)
	ends.closeAgents()
	if err != nil {
		runtime.UnlockOSThread()
		_ = a.in.Close()
		a.out.end()
		a.err.end()
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	a.id = proctree.ID{PID: pid}
	if id, ok := proctree.LookUp(pid); ok { // always: it has not been reaped
		a.id = id
	}
	go a.reap() // ends with the last descendant
	return a, nil
}

// fork starts the program in the group, or in none when there is none or the kernel refuses.
func fork(s Spec, in proctree.Group, ends pipeEnds) (pid int, err error) {
	args := append([]string{s.Path}, s.Args...)
	attr := &syscall.ProcAttr{
		Dir: s.Dir, Env: s.environment(),
		Files: []uintptr{uintptr(ends.in[0]), uintptr(ends.out[1]), uintptr(ends.err[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	if fd, err := in.Open(); err == nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, fd
		pid, err = syscall.ForkExec(s.Path, args, attr)
		_ = unix.Close(fd)
		if err == nil {
			return pid, nil
		}
		attr.Sys.UseCgroupFD = false // whether it was the group's fault cannot be told
	}
	return syscall.ForkExec(s.Path, args, attr)
}

// reap takes the exit status of every descendant that is handed to us until there is none.
func (a *agent) reap() {
	defer close(a.alone)
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil) // looks, and takes nothing
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil { // ECHILD: no child is left
			return
		}
		a.takeOne()
	}
}

// takeOne takes an exit status under the lock, so that no signal is sent to a number that is free again.
func (a *agent) takeOne() {
	a.mu.Lock()
	defer a.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err != nil || pid != a.id.PID || a.exited {
		return
	}
	a.exited, a.status = true, status
	a.out.agentExited()
	a.err.agentExited()
	_ = a.in.Close() // frees a writer that a grandchild would keep waiting
	close(a.dead)
}

// signal sends sig to the agent's process group.
func (a *agent) signal(sig syscall.Signal) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.exited {
		return fmt.Errorf("signal the agent: %w", os.ErrProcessDone)
	}
	if err := syscall.Kill(-a.id.PID, sig); err != nil {
		return fmt.Errorf("signal the agent: %w", err)
	}
	return nil
}

// exit is how the agent ended; valid once dead is closed.
func (a *agent) exit() Exit {
	if a.status.Signaled() {
		return Exit{Known: true, Code: -int(a.status.Signal()), Signal: true}
	}
	return Exit{Known: true, Code: a.status.ExitStatus()}
}

// pipeEnds are three pipes; [0] is read and [1] is written.
type pipeEnds struct{ in, out, err [2]int }

// openPipes makes the pipes: our ends wait in Go's poller, the agent's are ordinary.
func openPipes() (p pipeEnds, err error) {
	made := []*[2]int{&p.in, &p.out, &p.err}
	for i, pipe := range made {
		if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
			for _, pipe := range made[:i] {
				_, _ = syscall.Close(pipe[0]), syscall.Close(pipe[1])
			}
			return p, fmt.Errorf("make a pipe: %w", err)
		}
	}
	for _, fd := range []int{p.in[1], p.out[0], p.err[0]} {
		if err := syscall.SetNonblock(fd, true); err != nil {
			return p, fmt.Errorf("prepare a pipe: %w", err)
		}
	}
	return p, nil
}

// closeAgents closes what the agent has its own copies of.
func (p pipeEnds) closeAgents() {
	_, _, _ = syscall.Close(p.in[0]), syscall.Close(p.out[1]), syscall.Close(p.err[1])
}
