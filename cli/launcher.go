package cli

import (
	"context"
	"io"
	"slices"
	"time"
)

// Launcher starts processes in one environment: this host, a container, or another machine. The processes run until
// they are stopped. They survive the end of ductor, and the next ductor can find them again. Safe for concurrent use.
type Launcher interface {
	// Start runs cmd. ctx limits only the start; the process runs until Stop or its own end. If the program does not
	// exist, the error matches fs.ErrNotExist.
	Start(ctx context.Context, cmd Command) (Process, error)
	// LookPath finds a program by name in this environment, like exec.LookPath.
	LookPath(name string) (string, error)
	// Left lists the runs of the previous process of ductor. It includes runs whose program has ended if their output
	// was not read. It includes neither runs of this Launcher nor probes.
	Left(ctx context.Context) ([]LeftRun, error)
	// Attach takes over a run of the previous process of ductor. Stdout of the returned Process starts at offset. If
	// the run does not exist, the error matches fs.ErrNotExist.
	Attach(ctx context.Context, left LeftRun, offset int64) (Process, error)
	// Discard kills a run of the previous process of ductor, with everything that the run started, and deletes its
	// output.
	Discard(ctx context.Context, run RunID) error
	// Settled tells the Launcher that the outcome of a turn is stored. In the background, the Launcher then deletes
	// output that only this turn needed for being resumed.
	//
	// If the turn's process continues to run, the Launcher deletes its output up to the first turn that is not settled.
	// If all turns are settled, it deletes the output up to the end of the last turn.
	Settled(turn TurnID)
}

// Start is the position of a turn in a run. ductor stores it before it sends the prompt, in the transaction that marks
// the turn as running. The next process of ductor can then resume the turn at this position. A turn without a Start
// never reached an agent.
type Start struct {
	Run    RunID
	Output int64 // bytes of output that belong to earlier turns
	Input  int64 // bytes of input that belong to earlier turns
	Note   string
}

// Recorder stores the start of a turn. If it fails, the caller does not send the prompt. For BackgroundMark, the
// Recorder stores that the run has open background work, or no such work if the Note is empty.
type Recorder func(ctx context.Context, turn TurnID, start Start) error

// Recording is a Launcher that stores the starts of turns through a Recorder.
type Recording interface {
	RecordBy(record Recorder)
}

// RunID identifies a run: a program from its start to its end, with its output.
type RunID string

// Purpose describes why a run was started. The runner stores it with the run, so that ductor recognizes the run after a
// restart.
type Purpose struct {
	Agent        Agent
	Mode         Mode         // empty for a probe: a short query of the agent, which is useless after a restart
	Conversation Conversation // empty for a process that serves several conversations
	// Setting is the dialect's own digest of the process's configuration. After a restart, ductor compares it to find
	// the requests for which the process can be used. It reveals no secrets.
	Setting string
}

// Mark is the position of a turn in a run's output and input.
type Mark struct {
	Turn   TurnID
	Output int64 // bytes of output that belong to earlier turns
	Input  int64 // bytes of input that belong to earlier turns
	// Note is a short text with the state that the dialect needs to resume the turn, such as token totals of earlier
	// turns.
	Note string
}

// BackgroundMark is the Turn of a mark that belongs to no turn. The mark means that all output before it was handled,
// no turn is running, and the agent works in the background. If its Note is empty, the agent does not work in the
// background. The start of the next turn makes the mark invalid.
const BackgroundMark TurnID = "background"

// OfTurn reports whether the mark belongs to a turn.
func (m Mark) OfTurn() bool { return m.Turn != BackgroundMark }

// LeftRun is a run of the previous process of ductor.
type LeftRun struct {
	Run RunID
	Purpose
	Marks       []Mark // of turns that are not over, in order of their start; from the store of turns, not from Left
	PID         int
	OutputBegin int64 // bytes at the start that were already deleted
	OutputEnd   int64 // bytes that it has printed
	Input       LeftInput
	Alive       bool   // the program is running; otherwise its output is complete
	Problem     string // why ductor cannot attach to it, in words for users; empty if it can
}

// LeftInput is the input of a LeftRun.
type LeftInput struct {
	End    int64 // bytes that have reached the program or will reach it
	Closed bool
}

// Missing returns the part of the input that the program has not received and can still receive. whole is the complete
// input of a program that serves one turn.
func (i LeftInput) Missing(whole []byte) []byte {
	if i.Closed {
		return nil
	}
	return whole[min(i.End, int64(len(whole))):]
}

// Mark returns the mark of a turn in the run. It returns false if the run has none.
func (r LeftRun) Mark(turn TurnID) (Mark, bool) {
	i := slices.IndexFunc(r.Marks, func(m Mark) bool { return m.Turn == turn })
	if i < 0 {
		return Mark{}, false
	}
	return r.Marks[i], true
}

// Reached reports whether any input after m has reached the program. It also returns true if the program has ended,
// because waiting for it is then useless.
func (r LeftRun) Reached(m Mark) bool { return r.Input.End > m.Input || !r.Alive }

// Background reports whether the run has background work but no running turn.
func (r LeftRun) Background() bool {
	return len(r.Marks) > 0 && r.Marks[len(r.Marks)-1].Turn == BackgroundMark
}

// Command describes a process to start. ductor starts it directly, without a shell.
type Command struct {
	Path string
	Args []string // without the program itself
	// Files are files of this host that the program will read. A Launcher that implements Bringer copies them first.
	Files []string
	Dir   string
	Env   []string // the whole environment; see ChildEnv
	For   Purpose
	// Turn is set for a process that serves only one turn. That turn starts at the first byte of the process's output.
	Turn TurnID
}

// Process is a started program with all its descendants. The caller must end every Process with Stop or Detach. Methods
// are safe for concurrent use, but Stdout must have only one reader.
type Process interface {
	// Run returns the ID of the run, for Launcher.Attach.
	Run() RunID
	// PID returns the program's process ID in its own environment.
	PID() int
	// Stdin writes to the program. Closing it sends end of file. Writes to a program that has ended fail. If ductor
	// dies during a Write of up to a megabyte, the program receives either all of it or nothing.
	Stdin() io.WriteCloser
	// Stdout reads the program's output. If a part of the output is lost, Read returns a *LostOutput once and can be
	// called again. Read returns io.EOF at the end: at the latest a short time after the program exited, even if a
	// grandchild still has the pipe open. After Detach it returns ErrDetached.
	Stdout() io.Reader
	// When returns the time at which the program printed the output at offset. It returns zero if the time is unknown.
	When(offset int64) time.Time
	// StderrTail returns the last few kilobytes that the program has printed to standard error.
	StderrTail() string
	// Begin stores the start of a turn; see Recorder. It takes Output from m, and sets Input to the current position.
	// The age limit of the run restarts.
	Begin(ctx context.Context, m Mark) error
	// Ended tells the Launcher that a turn has ended, and that no ended turn needs the output before the given offset;
	// see Launcher.Settled.
	Ended(output int64)
	// Stop ends the program and every descendant. It sends TERM, waits for grace, sends KILL, reaps the processes, and
	// checks again. It returns when no process is left, even if the program itself had exited before. Idempotent.
	Stop(ctx context.Context, grace time.Duration) error
	// Detach detaches from the program, which continues to run. After Detach only Stop has an effect. Idempotent.
	Detach()
	// Interrupt sends SIGINT to the program's process group.
	Interrupt() error
	// Done returns a channel that is closed when the program itself has exited.
	Done() <-chan struct{}
	// Exit returns how the program ended. It is valid only after Done.
	Exit() ExitStatus
}

// StopSlack is how much longer than its grace period Process.Stop may take.
const StopSlack = 10 * time.Second

// ExitStatus describes how a program ended.
type ExitStatus struct {
	Code   int // exit code; for a signal, minus its number; CodeUnknown if ductor could not watch the exit
	Signal bool
	By     Terminator
	OOM    bool // the kernel killed it because memory ran out, if that is detectable
}

// Terminator names the cause of a program's end.
type Terminator string

// Terminator values. Itself also covers kills by unknown processes.
const (
	EndedByItself     Terminator = ""
	EndedByStop       Terminator = "stop"       // Process.Stop
	EndedByAge        Terminator = "max age"    // the program ran too long
	EndedOrphaned     Terminator = "orphaned"   // ductor was away for too long
	EndedByTerminated Terminator = "terminated" // the machine was shut down, or the runner was terminated
	EndedUnseen       Terminator = "unseen"     // the program ended while no runner watched it
)
