package cli

import (
	"context"
	"io"
	"slices"
	"time"
)

// Launcher starts processes in one environment: this host, a container, another machine. The processes survive the end
// of ductor, and ductor can find them again. They run until they are stopped. Safe for concurrent use.
type Launcher interface {
	// Start runs cmd. ctx limits only the start; the process runs until Stop or its own end. If the program does not
	// exist, the error matches fs.ErrNotExist.
	Start(ctx context.Context, cmd Command) (Process, error)
	// LookPath finds a program by name in this environment, like exec.LookPath.
	LookPath(name string) (string, error)
	// Left lists the runs of the previous process of ductor. It includes runs whose program has ended, if nobody has
	// read their output. It does not include runs of this Launcher or probes.
	Left(ctx context.Context) ([]LeftRun, error)
	// Attach takes over a run of the previous process of ductor. Stdout of the returned Process starts at offset. If
	// the run does not exist, the error matches fs.ErrNotExist.
	Attach(ctx context.Context, left LeftRun, offset int64) (Process, error)
	// Discard kills a run of the previous process, with everything it started, and deletes its output.
	Discard(ctx context.Context, run RunID) error
	// Settled reports that the outcome of a turn is stored. In the background, the Launcher then deletes the data that
	// it stored for resuming that turn.
	//
	// If the turn's process continues to run, that data is its output up to the first mark of a turn that is not
	// settled. If all its turns are settled, it is the output up to the end of the last turn.
	Settled(turn TurnID)
}

// Start is the position of a turn in a run. It is stored before the prompt is sent, in the commit that moves the turn
// to running. The next process of ductor can then resume the turn at this position. A turn without a Start never
// reached an agent.
type Start struct {
	Run    RunID
	Output int64 // bytes of output that belong to earlier turns
	Input  int64 // bytes of input that do
	Note   string
}

// Recorder stores the start of a turn. If it fails, the prompt is not sent. For BackgroundMark it stores that the run
// has open background work. If the Note of a BackgroundMark is empty, it stores that the run has none.
type Recorder func(ctx context.Context, turn TurnID, start Start) error

// Recording is a Launcher that stores the starts of turns through a Recorder.
type Recording interface {
	RecordBy(record Recorder)
}

// RunID identifies a run: a program from its start to its end, with its output.
type RunID string

// Purpose describes for which purpose a run was started. It is stored with the run, so that ductor recognizes the run
// after a restart.
type Purpose struct {
	Agent        Agent
	Mode         Mode         // empty for a probe: a short query of the agent, which is useless after a restart
	Conversation Conversation // empty for a process that serves several conversations
	// Setting is the dialect's own digest of the configuration of the process. After a restart, it tells ductor for
	// which requests the process can be used. It reveals no secrets.
	Setting string
}

// Mark is the position of a turn in a run's output and input.
type Mark struct {
	Turn   TurnID
	Output int64 // bytes of output that belong to earlier turns
	Input  int64 // bytes of input that do
	// Note is the state that the agent's package needs to resume the turn, such as totals of earlier turns. It should
	// be short.
	Note string
}

// BackgroundMark is the Turn of a mark that belongs to no turn. It means that everything before it has been handled,
// that no turn is running, and that background work of the agent is open. If its Note is empty, no background work is
// open. The start of the next turn makes the mark invalid.
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

// Missing returns the part of whole that can and must still be sent. whole is the input of a program that serves one
// turn.
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

// Reached reports whether any input after m has reached the program. It also returns true if the program has ended:
// then waiting for it has no use.
func (r LeftRun) Reached(m Mark) bool { return r.Input.End > m.Input || !r.Alive }

// Background reports whether the run has background work but no running turn.
func (r LeftRun) Background() bool {
	return len(r.Marks) > 0 && r.Marks[len(r.Marks)-1].Turn == BackgroundMark
}

// Command describes a process to start. ductor starts it directly, without a shell.
type Command struct {
	Path string
	Args []string // without the program itself
	// Files are files of this host that the program will read. A Launcher that is a Bringer copies them first.
	Files []string
	Dir   string
	Env   []string // the whole environment; see ChildEnv
	For   Purpose
	// Turn is set for a process that serves only one turn. That turn starts at the first byte of the process's output.
	Turn TurnID
}

// Process is a started program, together with everything it started. The caller must end every Process with Stop or
// Detach. Methods are safe for concurrent use. Stdout must have only one reader.
type Process interface {
	// Run returns the ID of the run, for Launcher.Attach.
	Run() RunID
	// PID returns the program's process ID in its own environment.
	PID() int
	// Stdin writes to the program. Its Close sends end of file. Writes to a program that has ended fail. If ductor dies
	// during a Write of up to a megabyte, the program receives either all of it or nothing.
	Stdin() io.WriteCloser
	// Stdout reads the program's output. If a part of the output is lost, it returns a *LostOutput once; reading can
	// continue after that. It returns io.EOF at the end. This is at the latest a short drain time after the program
	// exited, even if a grandchild still holds the pipe. After Detach it returns ErrDetached.
	Stdout() io.Reader
	// When returns the time at which the program printed the output at offset. It returns zero if the time is unknown.
	When(offset int64) time.Time
	// StderrTail returns the last few kilobytes that the program has printed to standard error.
	StderrTail() string
	// Begin stores the start of a turn before it returns; see Recorder. It takes Output from m, and sets Input to the
	// current position. The age limit of the run starts again.
	Begin(ctx context.Context, m Mark) error
	// Ended reports that a turn has ended, and that no ended turn needs the output before the given offset; see
	// Launcher.Settled.
	Ended(output int64)
	// Stop ends the program and every descendant: it sends TERM, waits for grace, sends KILL, reaps, and checks again.
	// It returns when no process is left, and at once if none is running. It works even after the program itself has
	// exited. Idempotent.
	Stop(ctx context.Context, grace time.Duration) error
	// Detach detaches from the program, which continues. After Detach only Stop has an effect. Idempotent.
	Detach()
	// Interrupt sends SIGINT to the program's process group.
	Interrupt() error
	// Done is closed when the program itself has exited. Exit is then valid.
	Done() <-chan struct{}
	// Exit returns how the program ended. It is valid only after Done.
	Exit() ExitStatus
}

// StopSlack is how much longer than its grace Process.Stop may take.
const StopSlack = 10 * time.Second

// ExitStatus describes how a program ended.
type ExitStatus struct {
	Code   int // exit code; for a signal, minus its number; CodeUnknown if ductor could not watch the exit
	Signal bool
	By     Terminator
	OOM    bool // the kernel killed it because memory ran out, if that is detectable
}

// Terminator is the party that ended a program.
type Terminator string

// Terminator values. Itself means the program, or an unknown process that is not part of ductor.
const (
	EndedByItself     Terminator = ""
	EndedByStop       Terminator = "stop"       // Process.Stop
	EndedByAge        Terminator = "max age"    // it ran too long
	EndedOrphaned     Terminator = "orphaned"   // no ductor was running for too long
	EndedByTerminated Terminator = "terminated" // the machine was shut down, or the runner was terminated
	EndedUnseen       Terminator = "unseen"     // it ended while no runner watched it
)
