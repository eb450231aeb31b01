package cli

import (
	"context"
	"io"
	"slices"
	"time"
)

// Launcher starts processes in one environment: this host, a container, another machine. The processes survive ductor
// until they are stopped, and ductor can find them again. Safe for concurrent use.
type Launcher interface {
	// Start runs cmd. ctx limits only the start; the process lives until Stop or its own end. If the program does not
	// exist, the error matches fs.ErrNotExist.
	Start(ctx context.Context, cmd Command) (Process, error)
	// LookPath finds a program by name in this environment, like exec.LookPath.
	LookPath(name string) (string, error)
	// Left lists the runs of the previous process of ductor, including those whose program ended and whose output
	// nobody read. It does not include runs of this Launcher or probes.
	Left(ctx context.Context) ([]LeftRun, error)
	// Attach takes over a run of the previous process; its Stdout starts at offset. If the run does not exist, the
	// error matches fs.ErrNotExist.
	Attach(ctx context.Context, left LeftRun, offset int64) (Process, error)
	// Discard kills a run of the previous process, with everything it started, and deletes its output.
	Discard(ctx context.Context, run RunID) error
	// Settled reports that the outcome of a turn is stored. In the background, the Launcher deletes the data for
	// resuming that turn. For a process that lives on, that is its output up to the first mark of a turn that is not
	// settled or, without such a mark, up to the end of the last turn.
	Settled(turn TurnID)
}

// Start is the position of a turn in a run. The commit that moves the turn to running stores it before the prompt is
// sent, so that the next process of ductor resumes the turn there. A turn without a Start never reached an agent.
type Start struct {
	Run    RunID
	Output int64 // bytes of output that belong to earlier turns
	Input  int64 // bytes of input that do
	Note   string
}

// Recorder stores the start of a turn. If that fails, the prompt is not sent. For BackgroundMark it stores that the run
// has open background work or, if the Note is empty, that it has none.
type Recorder func(ctx context.Context, turn TurnID, start Start) error

// Recording is a Launcher that stores the starts of turns through record.
type Recording interface {
	RecordBy(record Recorder)
}

// RunID names a run: a program from its start to its end, with its output.
type RunID string

// Purpose identifies a run. It is stored with the run, so that ductor recognizes the run after a restart.
type Purpose struct {
	Agent        Agent
	Mode         Mode         // empty for a probe: a short query of the agent, which is useless after a restart
	Conversation Conversation // empty for a process that serves several conversations
	// Setting is the dialect's own digest of the process's configuration. After a restart, ductor uses it to find the
	// requests that the process fits. It reveals no secret.
	Setting string
}

// Mark is the position of a turn in a run's output and input.
type Mark struct {
	Turn   TurnID
	Output int64 // bytes of output that belong to earlier turns
	Input  int64 // bytes of input that do
	// Note is the dialect's state for resuming the turn, such as totals of earlier turns. It should be short.
	Note string
}

// BackgroundMark is the Turn of a mark without a turn: everything before it has been handled, no turn is running, and
// background work of the agent is open. With an empty Note, no background work is open. The start of the next turn
// makes it void.
const BackgroundMark TurnID = "background"

// OfTurn reports whether the mark belongs to a turn.
func (m Mark) OfTurn() bool { return m.Turn != BackgroundMark }

// LeftRun is a run of the previous process of ductor.
type LeftRun struct {
	Run RunID
	Purpose
	Marks       []Mark // of turns that are not over, in order of their start; from the store of turns, not from Left
	PID         int
	OutputBegin int64 // bytes that were already deleted
	OutputEnd   int64 // bytes that it has printed
	Input       LeftInput
	Alive       bool   // the program is running; otherwise its output is complete
	Problem     string // why ductor cannot attach to it, in words for users; empty if it can
}

// LeftInput is the input of a LeftRun.
type LeftInput struct {
	End    int64 // bytes that have reached the program or will
	Closed bool
}

// Missing returns the part of whole, the input of a program of one turn, that can and must still be sent.
func (i LeftInput) Missing(whole []byte) []byte {
	if i.Closed {
		return nil
	}
	return whole[min(i.End, int64(len(whole))):]
}

// Mark returns the mark of a turn in the run, or false.
func (r LeftRun) Mark(turn TurnID) (Mark, bool) {
	i := slices.IndexFunc(r.Marks, func(m Mark) bool { return m.Turn == turn })
	if i < 0 {
		return Mark{}, false
	}
	return r.Marks[i], true
}

// Reached reports whether a part of the input after m reached the program, or can no longer reach it because the
// program has ended.
func (r LeftRun) Reached(m Mark) bool { return r.Input.End > m.Input || !r.Alive }

// Background reports whether the run has background work but no running turn.
func (r LeftRun) Background() bool {
	return len(r.Marks) > 0 && r.Marks[len(r.Marks)-1].Turn == BackgroundMark
}

// Command is a process to start, without a shell between ductor and the process.
type Command struct {
	Path string
	Args []string // without the program itself
	// Files are files of this host that the program will read. A Launcher that is a Bringer copies them first.
	Files []string
	Dir   string
	Env   []string // the whole environment; see ChildEnv
	For   Purpose
	// Turn is the turn of a process that serves only one turn, which starts at its first byte.
	Turn TurnID
}

// Process is a started program with everything it started. The caller ends every Process with Stop or Detach. Methods
// are safe for concurrent use; Stdout has one reader.
type Process interface {
	// Run names the run, for Launcher.Attach.
	Run() RunID
	// PID returns the program's process ID in its own environment.
	PID() int
	// Stdin writes to the program; Close sends end of file. Writes to a dead program fail. If ductor dies during a
	// Write of up to a megabyte, the program receives either all of it or nothing.
	Stdin() io.WriteCloser
	// Stdout reads the program's output. If a part of the output is lost, it returns a *LostOutput once and can be read
	// further. It returns io.EOF at the end, and at the latest a short drain time after the program exited, even if a
	// grandchild still holds the pipe. After Detach it returns ErrDetached.
	Stdout() io.Reader
	// When returns when the output at offset was printed; zero if unknown.
	When(offset int64) time.Time
	// StderrTail returns the last few kilobytes of standard error so far.
	StderrTail() string
	// Begin stores the start of a turn before it returns, with m.Output as given and m.Input as it is now; see
	// Recorder. The age limit of the run counts from here.
	Begin(ctx context.Context, m Mark) error
	// Ended reports that a turn has ended, and that no ended turn needs the output before the given offset: see
	// Launcher.Settled.
	Ended(output int64)
	// Stop ends the program and every descendant: TERM, grace, KILL, reap, check again. It returns when none is left,
	// and at once without one. Idempotent, and works after the program itself exited.
	Stop(ctx context.Context, grace time.Duration) error
	// Detach detaches from the program, which continues. Idempotent; after it, only Stop has an effect.
	Detach()
	// Interrupt sends SIGINT to the program's process group.
	Interrupt() error
	// Done is closed when the program itself has exited and Exit is valid.
	Done() <-chan struct{}
	// Exit returns how the program ended; valid after Done.
	Exit() ExitStatus
}

// StopSlack is how long Process.Stop may take beyond its grace.
const StopSlack = 10 * time.Second

// ExitStatus is how a program ended.
type ExitStatus struct {
	Code   int // exit code; for a signal, minus its number; CodeUnknown if ductor could not watch the exit
	Signal bool
	By     Terminator
	OOM    bool // the kernel killed it because memory ran out, if that is detectable
}

// Terminator is the cause of a program's end.
type Terminator string

// The terminators. Itself is the program, or an unknown process outside.
const (
	EndedByItself     Terminator = ""
	EndedByStop       Terminator = "stop"       // Process.Stop
	EndedByAge        Terminator = "max age"    // it ran too long
	EndedOrphaned     Terminator = "orphaned"   // no ductor was running for too long
	EndedByTerminated Terminator = "terminated" // the machine was shut down, or the runner was terminated
	EndedUnseen       Terminator = "unseen"     // it ended while no runner watched it
)
