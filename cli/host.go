package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// runVar marks every process of a run in its environment, so that those are found that left the group,
// the session and the parent.
const runVar = "DUCTOR_RUN"

// Host starts processes on this machine, each in a session of its own. Linux only: it reads /proc.
// Use NewHost. Safe for concurrent use.
type Host struct {
	mark mark // of everything it starts; see NewHostFor

	mu       sync.Mutex
	starting int          // programs between fork and the entry in programs
	programs map[int]bool // children whose exit status somebody waits for
}

var _ Launcher = (*Host)(nil)

// NewHost makes the launcher for this machine. One per ductor: see BecomeSubreaper. What it starts has no
// owner; see NewHostFor.
func NewHost() *Host { return &Host{programs: map[int]bool{}} }

// LookPath finds a program by name; a name with a slash is checked as it is. A program that is not
// there gives an error matching fs.ErrNotExist.
func (h *Host) LookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("find %s in PATH: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return filepath.Abs(path)
}

// Start runs cmd in a session and group of its own. A missing working directory is an error that does
// not match fs.ErrNotExist; a missing program is one that does.
func (h *Host) Start(ctx context.Context, cmd Command) (Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, context.Cause(ctx))
	}
	if cmd.Dir != "" {
		if info, err := os.Stat(cmd.Dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("start %s: %s is not a directory ductor can use", cmd.Path, cmd.Dir)
		}
	}
	path, err := h.LookPath(cmd.Path)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	run := cmd.Run
	if run == "" {
		run = rand.Text()
	}
	run = h.mark.run(run)
	pipes, err := openPipes()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	child := &exec.Cmd{
		Path: path, Args: append([]string{path}, cmd.Args...), Dir: cmd.Dir, Env: markedEnv(cmd.Env, run),
		Stdin: pipes.childIn, Stdout: pipes.childOut, Stderr: pipes.childErr,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = h.spawn(child)
	pipes.closeChildEnds()
	if err != nil {
		pipes.closeOurEnds()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return newHostProcess(h, child, pipes, run), nil
}

// spawn starts child and enters it in programs, without holding the lock over the fork.
func (h *Host) spawn(child *exec.Cmd) error {
	h.mu.Lock()
	h.starting++
	h.mu.Unlock()
	err := child.Start()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starting--
	if err == nil {
		h.programs[child.Process.Pid] = true
	}
	return err
}

// forget is called after the program's exit status was taken.
func (h *Host) forget(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.programs, pid)
}

func markedEnv(env []string, run string) []string {
	marked := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if !strings.HasPrefix(entry, runVar+"=") {
			marked = append(marked, entry)
		}
	}
	return append(marked, runVar+"="+run)
}

// pipes are the three pipes of a program: its ends and ours.
type pipes struct {
	childIn, childOut, childErr *os.File
	in, out, err                *os.File
}

func openPipes() (p pipes, err error) {
	if p.childIn, p.in, err = os.Pipe(); err != nil {
		return p, fmt.Errorf("make a pipe: %w", err)
	}
	if p.out, p.childOut, err = os.Pipe(); err == nil {
		p.err, p.childErr, err = os.Pipe()
	}
	if err != nil {
		p.closeChildEnds()
		p.closeOurEnds()
		return p, fmt.Errorf("make a pipe: %w", err)
	}
	return p, nil
}

func (p pipes) closeChildEnds() { closeFiles(p.childIn, p.childOut, p.childErr) }
func (p pipes) closeOurEnds()   { closeFiles(p.in, p.out, p.err) }

// closeFiles closes pipe ends; closing a pipe has no error anybody could act on. Nil files are passed over.
func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
