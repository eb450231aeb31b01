package cli

import (
	"context"
	"io"
	"slices"
	"time"
)

// Launcher starts processes in one environment: this host, a container, or another machine. The processes survive the
// end of ductor, and the next process of ductor can find them again. Methods are safe for concurrent use.
type Launcher interface {
	// Start runs cmd until the program ends, or until Process.Stop. Cancelling ctx aborts only the start. If the
	// program does not exist, the error matches fs.ErrNotExist.
	Start(ctx context.Context, cmd Command) (Process, error)
	// LookPath finds a program by its name in this environment, like exec.LookPath.
	LookPath(name string) (string, error)
	// Left lists the runs that the previous process of ductor started. It includes a run whose program has ended if
	// ductor has not read all of the output. It does not include probes; see Purpose.Mode.
	Left(ctx context.Context) ([]LeftRun, error)
	// Attach takes over a run that the previous process of ductor started. Stdout of the returned Process starts at
	// offset. If the run does not exist, the error matches fs.ErrNotExist.
	Attach(ctx context.Context, left LeftRun, offset int64) (Process, error)
	// Discard kills a run that the previous process of ductor started, with everything that the run started, and
	// deletes its output.
	Discard(ctx context.Context, run RunID) error
	// Settled tells the Launcher that ductor has stored the outcome of a turn, and will never resume it. In the
	// background, the Launcher then deletes the output that only this turn needed.
	//
	// If the turn's process continues to run, the Launcher keeps the output from the start of the first turn that is
	// not settled. If all turns are settled, it deletes the output up to the end of the last turn.
	Settled(turn TurnID)
}

// Start is the position at which a turn starts in the output and input of a run. ductor stores the Start before it
// sends the prompt. In the same transaction, it marks the turn as running. After a restart, ductor resumes the turn at
// this position. If a turn has no Start, no agent has received it.
type Start struct {
	Run    RunID
	Output int64 // number of bytes of output before the turn
	Input  int64 // number of bytes of input before the turn
	Note   string
}

// Recorder stores the start of a turn. If it returns an error, the caller does not send the prompt. If turn is
// BackgroundMark, start belongs to no turn. The Recorder then stores whether the run has background work: the run has
// some if start.Note is not empty.
type Recorder func(ctx context.Context, turn TurnID, start Start) error

// Recording is a Launcher that passes the start of each turn to a Recorder.
type Recording interface {
	RecordBy(record Recorder)
}

// RunID identifies a run. A run is a program from its start to its end, with its input and output.
type RunID string

// Purpose describes why a run was started. The runner, which supervises the program, stores the purpose, so that ductor
// recognizes the run after a restart.
type Purpose struct {
	Agent        Agent
	Mode         Mode         // empty for a probe, which is a short query; after a restart, ductor ends old probes
	Conversation Conversation // empty for a process that serves several conversations
	// Setting is a hash of the configuration with which the process runs. The provider computes the hash. After a
	// restart, ductor uses the hash to decide which requests the process can serve. The hash reveals no secrets.
	Setting string
}

// Mark is the position at which a turn starts in the output and input of a run.
type Mark struct {
	Turn   TurnID
	Output int64 // number of bytes of output before the turn
	Input  int64 // number of bytes of input before the turn
	// Note is a short text in which the provider stores the state that it needs to resume the turn, such as token
	// totals of earlier turns.
	Note string
}

// BackgroundMark is the value of Mark.Turn for a mark that belongs to no turn. Such a mark means that no turn is
// running, and that ductor has handled all output before the mark. Mark.Note is not empty if the agent works in the
// background. The mark is valid until the next turn starts.
const BackgroundMark TurnID = "background"

func (m Mark) OfTurn() bool { return m.Turn != BackgroundMark }

// LeftRun is a run that the previous process of ductor started.
type LeftRun struct {
	Run RunID
	Purpose
	Marks       []Mark // where the unfinished turns start, oldest first; Launcher.Left does not set Marks
	PID         int
	OutputBegin int64 // number of deleted bytes at the start of the output
	OutputEnd   int64 // bytes that the program has printed
	Input       LeftInput
	Alive       bool   // the program is running; if false, its output is complete
	Problem     string // why ductor cannot attach to the run, for users; empty if it can
}

// LeftInput describes the input of a LeftRun.
type LeftInput struct {
	End    int64 // bytes that the program has received, or that the runner will pass to the program
	Closed bool
}

// Missing returns the part of the input that ductor must still send to a program that serves one turn. whole is the
// complete input. If the input is closed, Missing returns nothing.
func (i LeftInput) Missing(whole []byte) []byte {
	if i.Closed {
		return nil
	}
	return whole[min(i.End, int64(len(whole))):]
}

// Mark returns the mark of a turn. It returns false if the run has no such mark.
func (r LeftRun) Mark(turn TurnID) (Mark, bool) {
	i := slices.IndexFunc(r.Marks, func(m Mark) bool { return m.Turn == turn })
	if i < 0 {
		return Mark{}, false
	}
	return r.Marks[i], true
}

// Reached reports whether ductor can no longer send the input that starts at m: the program has received at least a
// part of it, or the program has ended.
func (r LeftRun) Reached(m Mark) bool { return r.Input.End > m.Input || !r.Alive }

// Background reports whether the run has background work and no running turn.
func (r LeftRun) Background() bool {
	return len(r.Marks) > 0 && r.Marks[len(r.Marks)-1].Turn == BackgroundMark
}

// Command describes a process to start. ductor starts it directly, without a shell.
type Command struct {
	Path string
	Args []string // the arguments, without the program itself
	// Files lists files of this host that the program will read. A Launcher of another environment copies them first;
	// see Bringer.
	Files []string
	Dir   string
	Env   []string // the complete environment; see ChildEnv
	For   Purpose
	// Turn is set if the process serves only this turn. The turn then starts at the first byte of the process's output.
	Turn TurnID
}

// Process is a started program with all its descendants. The caller must call Stop or Detach on every Process. Methods
// are safe for concurrent use, but Stdout must have only one reader.
type Process interface {
	// Run returns the ID of the run, for Launcher.Attach.
	Run() RunID
	// PID returns the program's process ID. A container has process IDs of its own.
	PID() int
	// Stdin returns a writer to the program's standard input. Closing it sends end of file. Writes to a program that
	// has ended fail. If ductor dies during a Write of up to a megabyte, the program receives either all of it or
	// nothing.
	Stdin() io.WriteCloser
	// Stdout returns a reader of the program's output. If a part of the output is lost, Read returns a *LostOutput
	// once, and can be called again. Read returns io.EOF soon after the program exited, even if a grandchild still has
	// the pipe open. After Detach it returns ErrDetached.
	Stdout() io.Reader
	// When returns the time at which the program printed the output at offset, or zero if the time is unknown.
	When(offset int64) time.Time
	// StderrTail returns the last few kilobytes of the program's standard error.
	StderrTail() string
	// Begin stores the start of a turn; see Recorder. The caller sets m.Output. Begin sets m.Input to the current
	// position. From now on, the age of the run counts from this turn; see Timing.StaleAfter.
	Begin(ctx context.Context, m Mark) error
	// Ended tells the Launcher that a turn has ended, and that its output ends at the given offset. When all turns are
	// settled, the output before this offset can be deleted; see Launcher.Settled.
	Ended(output int64)
	// Stop ends the program and every descendant. It sends SIGTERM, and SIGKILL after grace. It returns when no process
	// is left, even if the program itself had exited before. Idempotent.
	Stop(ctx context.Context, grace time.Duration) error
	// Detach detaches from the program, which continues to run. Afterwards, only Stop has an effect. Idempotent.
	Detach()
	// Interrupt sends SIGINT to the program's process group.
	Interrupt() error
	// Done returns a channel that is closed when the program has exited. Its descendants may still be running.
	Done() <-chan struct{}
	// Exit returns how the program ended. It is valid only after Done.
	Exit() ExitStatus
}

// StopSlack is the time that Process.Stop may take in addition to its grace period.
const StopSlack = 10 * time.Second

// ExitStatus describes how a program ended.
type ExitStatus struct {
	Code   int // exit code; if Signal is set, the negative signal number; CodeUnknown if ductor did not see the end
	Signal bool
	By     Terminator
	OOM    bool // the kernel killed the program because memory ran out; false if ductor cannot detect this
}

// Terminator names who or what ended a program.
type Terminator string

// Terminator values.
const (
	EndedByItself     Terminator = ""           // the program exited, or an unknown process killed it
	EndedByStop       Terminator = "stop"       // Process.Stop
	EndedByKill       Terminator = "kill"       // `ductor kill`, or Launcher.Discard
	EndedByAge        Terminator = "max age"    // the program ran longer than Timing.StaleAfter
	EndedOrphaned     Terminator = "orphaned"   // ductor was not running for longer than Timing.OrphanAfter
	EndedByTerminated Terminator = "terminated" // the machine shut down, or a signal terminated the runner
	EndedUnseen       Terminator = "unseen"     // the program ended while no runner was watching it
)
