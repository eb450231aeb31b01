package cli

import (
	"context"
	"io"
	"time"
)

// Launcher starts processes in one place: this host, a container, another machine. Safe for concurrent use.
type Launcher interface {
	// Start runs cmd. ctx bounds the start only; the process lives until Stop or its own end.
	// A program that is not there gives an error matching fs.ErrNotExist.
	Start(ctx context.Context, cmd Command) (Process, error)
	// LookPath finds a program by name in this place, like exec.LookPath.
	LookPath(name string) (string, error)
}

// Command is a process to start. There is no shell between us and it.
type Command struct {
	Path string
	Args []string // without the program itself
	Dir  string
	Env  []string // the whole environment; see ChildEnv
	// Run marks everything the process starts, so that Stop finds what left the process group.
	// Unique per Start; a launcher makes one up when it is empty.
	Run string
}

// Process is one started program and all it started. Methods are safe for concurrent use.
type Process interface {
	// PID is the program's process id in its own place.
	PID() int
	// Stdin writes to the program; Close gives it end of file. Writes to a dead program fail.
	Stdin() io.WriteCloser
	// Stdout reads what the program prints. It gives io.EOF at the end, and at the latest a short drain
	// time after the program exited, even when a grandchild still holds the pipe.
	Stdout() io.Reader
	// StderrTail is the last few kilobytes of standard error so far.
	StderrTail() string
	// Stop ends the program and every descendant: TERM, grace, KILL, reap, look again. It returns when
	// none is left, and at once when none was. Idempotent, and works after the program itself exited.
	Stop(ctx context.Context, grace time.Duration) error
	// Interrupt sends SIGINT to the program's process group.
	Interrupt() error
	// Done is closed when the program itself exited and Exit is valid.
	Done() <-chan struct{}
	// Exit is how the program ended; valid after Done.
	Exit() ExitStatus
}

// ExitStatus is how a program ended.
type ExitStatus struct {
	Code   int // exit code; for a signal, minus its number
	Signal bool
}
