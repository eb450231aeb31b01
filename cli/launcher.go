package cli

import (
	"context"
	"io"
	"slices"
	"time"
)

// Launcher starts processes in one place: this host, a container, another machine. What it starts outlives
// ductor until it is stopped, and can be found again. Safe for concurrent use.
type Launcher interface {
	// Start runs cmd. ctx bounds the start only; the process lives until Stop or its own end.
	// A program that is not there gives an error matching fs.ErrNotExist.
	Start(ctx context.Context, cmd Command) (Process, error)
	// LookPath finds a program by name in this place, like exec.LookPath.
	LookPath(name string) (string, error)
	// Left lists the runs that the previous process of ductor left here, with those whose program ended and whose output
	// was not taken. Runs of this Launcher are not in it, and neither are probes.
	Left(ctx context.Context) ([]LeftRun, error)
	// Attach takes over a run that was left; its Stdout begins at offset. A run that is not there gives an
	// error matching fs.ErrNotExist.
	Attach(ctx context.Context, left LeftRun, offset int64) (Process, error)
	// Discard ends a run that was left, with everything it started, and forgets its output.
	Discard(ctx context.Context, run RunID) error
	// Settled says that the outcome of a turn is recorded: what was kept for going on with it is forgotten, in
	// the background. Of a process that lives on, that is its output up to the first mark of a turn that is not
	// recorded or, if there is none, up to the end of the last turn.
	Settled(turn TurnID)
}

// Start is where a turn begins in a run. The commit that moves the turn to running stores it, before the prompt leaves, so
// that the next process of ductor resumes the turn there. A turn without one never reached an agent.
type Start struct {
	Run    RunID
	Output int64 // bytes of output that belong to what was before
	Input  int64 // bytes of input that do
	Note   string
}

// Recorder stores where a turn begins. The prompt of a turn whose start cannot be stored is not sent. For BackgroundMark it
// stores that work in the background is open in the run or, where the Note is empty, that none is.
type Recorder func(ctx context.Context, turn TurnID, start Start) error

// Recording is a Launcher that has starts stored: by record, from then on.
type Recording interface {
	RecordBy(record Recorder)
}

// RunID names a run: a program from its start to its end, and what it printed.
type RunID string

// Purpose says what a run is for. It is kept beside the run, so that ductor knows it again after a restart.
type Purpose struct {
	Agent        Agent
	Mode         Mode         // empty for a probe: a short question about the agent, of no worth after a restart
	Conversation Conversation // empty for a process that serves several
	// Setting is the dialect's own digest of what the process was started with, so that after a restart ductor
	// knows which requests it fits. It tells no secret.
	Setting string
}

// Mark is where a turn begins in a run's output and input.
type Mark struct {
	Turn   TurnID
	Output int64 // bytes of output that belong to what was before
	Input  int64 // bytes of input that do
	// Note is what the dialect must know to go on with the turn, such as totals of earlier ones. Short.
	Note string
}

// BackgroundMark is the Turn of a mark of no turn: what came before it was dealt with, no turn runs, and work that the
// agent does in the background is open; with an empty Note, that it is no longer. Whoever begins a turn voids it.
const BackgroundMark TurnID = "background"

// OfTurn says whether the mark is one of a turn.
func (m Mark) OfTurn() bool { return m.Turn != BackgroundMark }

// LeftRun is a run of the previous process of ductor.
type LeftRun struct {
	Run RunID
	Purpose
	Marks       []Mark // of turns that are not over, in order of their beginning; from what is stored with the turns, not from Left
	PID         int
	OutputBegin int64 // bytes of it that are gone
	OutputEnd   int64 // bytes it has printed
	InputEnd    int64 // bytes that reached its input, or will
	InputClosed bool
	Alive       bool   // the program runs; else its output is all there is
	Problem     string // why it cannot be attached to, in words for people; empty if it can
}

// Mark says where a turn begins in the run; false if it does not begin there.
func (r LeftRun) Mark(turn TurnID) (Mark, bool) {
	i := slices.IndexFunc(r.Marks, func(m Mark) bool { return m.Turn == turn })
	if i < 0 {
		return Mark{}, false
	}
	return r.Marks[i], true
}

// Background says whether no turn runs in the run, but work in the background.
func (r LeftRun) Background() bool {
	return len(r.Marks) > 0 && r.Marks[len(r.Marks)-1].Turn == BackgroundMark
}

// Command is a process to start. There is no shell between us and it.
type Command struct {
	Path string
	Args []string // without the program itself
	// Files are files of this host that the program is told to read. A Launcher that is a Bringer brings them first.
	Files []string
	Dir   string
	Env   []string // the whole environment; see ChildEnv
	For   Purpose
	// Turn is the turn a process is started for, when it is for one alone: it begins at its first byte.
	Turn TurnID
}

// Process is one started program and all it started. Every Process ends in Stop or Detach. Methods are safe
// for concurrent use; Stdout has one reader.
type Process interface {
	// Run names the run, for Launcher.Attach.
	Run() RunID
	// PID is the program's process id in its own place.
	PID() int
	// Stdin writes to the program; Close gives it end of file. Writes to a dead program fail. A Write of up
	// to a megabyte reaches the program whole or, if ductor dies during it, not at all.
	Stdin() io.WriteCloser
	// Stdout reads what the program prints. It gives a *LostOutput once where some of it cannot be had, and
	// can be read on; io.EOF at the end, and at the latest a short drain time after the program exited, even
	// when a grandchild still holds the pipe; ErrDetached after Detach.
	Stdout() io.Reader
	// When is when the output at offset was printed; zero if that is not known.
	When(offset int64) time.Time
	// StderrTail is the last few kilobytes of standard error so far.
	StderrTail() string
	// Begin has it stored where a turn begins, before it returns: m.Output as given, m.Input as it is now; see Recorder. The
	// age limit of the run is counted from here.
	Begin(ctx context.Context, m Mark) error
	// Ended says that a turn has ended, and that none which has needs the output before that offset: see Launcher.Settled.
	Ended(output int64)
	// Stop ends the program and every descendant: TERM, grace, KILL, reap, look again. It returns when
	// none is left, and at once when none was. Idempotent, and works after the program itself exited.
	Stop(ctx context.Context, grace time.Duration) error
	// Detach detaches from the program, which goes on. Idempotent; after it only Stop does anything.
	Detach()
	// Interrupt sends SIGINT to the program's process group.
	Interrupt() error
	// Done is closed when the program itself exited and Exit is valid.
	Done() <-chan struct{}
	// Exit is how the program ended; valid after Done.
	Exit() ExitStatus
}

// StopSlack is how long Process.Stop may take beyond its grace.
const StopSlack = 10 * time.Second

// ExitStatus is how a program ended.
type ExitStatus struct {
	Code   int // exit code; for a signal, minus its number; CodeUnknown if it was not seen
	Signal bool
	By     Terminator
	OOM    bool // the kernel ended it for want of memory, as far as that can be seen
}

// Terminator is who ended a program.
type Terminator string

// The terminators. Itself is the program, or somebody outside.
const (
	EndedByItself     Terminator = ""
	EndedByStop       Terminator = "stop"       // Process.Stop
	EndedByAge        Terminator = "max age"    // it ran for too long
	EndedOrphaned     Terminator = "orphaned"   // no ductor was there for too long
	EndedByTerminated Terminator = "terminated" // the machine was shut down, or its runner told to end
	EndedUnseen       Terminator = "unseen"     // it ended while no runner watched it
)
