package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
	"ductor/internal/runner/fork"
)

// children are the agents whose programs are child processes of the runner. After a child is reaped, the kernel may
// give its PID to another process. So a lock prevents one goroutine from reaping a child while another one starts or
// signals it.
type children struct {
	limits fork.Limits // kernel settings for new agents
	group  string      // control group below which each agent gets its own group; empty if not available

	reaping sync.Mutex     // held while a child is reaped, started or signalled
	byPID   map[int]*agent // guarded by reaping
}

// makeGroup creates a control group for a run in the directory root. It returns the zero Group if this fails.
func (c *children) makeGroup(root, id string) proctree.Group {
	prefix, err := groupPrefix(root)
	path := filepath.Join(c.group, prefix+id)
	if c.group == "" || err != nil || unix.Mkdir(path, 0o755) != nil {
		return proctree.Group{}
	}
	return proctree.Group{Path: path}
}

// start starts the program of an agent in a control group, and sets a.root. The program gets fds as its descriptors 0,
// 1, 2 and fork.InputFD.
func (c *children) start(a *agent, program fork.Program, group proctree.Group, fds [4]int) error {
	c.reaping.Lock()
	defer c.reaping.Unlock()
	pid, err := fork.Start(program, group, fds, c.limits)
	if err != nil {
		return fmt.Errorf("start %s: %w", program.Path, err)
	}
	a.root, _ = proctree.LookUp(pid) // cannot fail, because the process is not reaped yet
	c.byPID[pid] = a
	return nil
}

// signal sends a signal to an agent's process group. It returns os.ErrProcessDone if the agent has exited.
func (c *children) signal(a *agent, sig syscall.Signal) error {
	c.reaping.Lock()
	defer c.reaping.Unlock()
	select {
	case <-a.life.dead:
		return os.ErrProcessDone
	default:
	}
	if !a.root.Running() {
		return os.ErrProcessDone
	}
	return syscall.Kill(-a.root.PID, sig)
}

// parentOf reports whether an agent is a child of this process. An upgrade replaces the program of this process, but
// not its children. parentOf registers the child, so that reap collects its exit.
func (c *children) parentOf(a *agent) bool {
	c.reaping.Lock()
	defer c.reaping.Unlock()
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, a.root.PID, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err == nil && a.record.Boot == proctree.BootID() {
		c.byPID[a.root.PID] = a
		return true
	}
	return false
}

// reap collects the exits of children until ctx is done.
func (c *children) reap(ctx context.Context, signals <-chan os.Signal) {
	for {
		for c.reapOne() {
		}
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
	}
}

// reapChild reaps a child that has exited. It returns a PID of 0 or less if no child has exited.
func reapChild() (pid int, status syscall.WaitStatus) {
	err := error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		pid, err = syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	}
	return pid, status
}

// reapOne collects the exit of one child. It returns false if no child has exited.
func (c *children) reapOne() bool {
	c.reaping.Lock()
	defer c.reaping.Unlock()
	pid, w := reapChild()
	if pid <= 0 {
		return false
	}
	if a := c.byPID[pid]; a != nil {
		delete(c.byPID, pid)
		e := Exit{Known: true, Code: w.ExitStatus()}
		if w.Signaled() {
			e = Exit{Known: true, Code: -int(w.Signal()), Signal: true}
		}
		a.recordExit(e)
	}
	return true
}
