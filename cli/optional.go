package cli

import (
	"context"
	"fmt"
)

// Measured is a Process that knows what it holds.
type Measured interface {
	// Memory is how many bytes the program and all it started have resident; pages they share count for each.
	Memory(ctx context.Context) (int64, error)
}

// Lister is a Process that can name what runs of it.
type Lister interface {
	// Processes names the program and what it started, as far as they run and the oldest first. Of many it names some.
	Processes(ctx context.Context) ([]ProcessName, error)
}

// ProcessName names a process in its own place.
type ProcessName struct {
	Name string
	PID  int
}

// Finder is a Launcher that knows its processes by their numbers.
type Finder interface {
	// Find gives a process of agent that was started or attached to here and not stopped; nil if there is none.
	Find(agent Agent, pid int) Process
}

// Bringer is a Launcher of a place that does not see this host's files.
type Bringer interface {
	// Bring copies files, and directories with the files in them, of this host to where they have the same path there. Those that are there already are
	// passed over. Safe for concurrent use.
	Bring(ctx context.Context, paths []string) error
}

// Helper is a Launcher of an environment whose files this host does not see: ductor's own program looks after them there.
type Helper interface {
	// Help makes the environment at need and has ductor's program there do what args say, with the environment that a
	// program would be given for env. It returns the files that were found there, as JSON; nil where none were asked for. The
	// error says what went wrong there too.
	Help(ctx context.Context, env []string, args ...string) (files []byte, err error)
}

// SkillReader is a Provider whose agent asks before it uses a skill, and names only that.
type SkillReader interface {
	// SkillTool is the Tool of such a request.
	SkillTool() string
	// ShowSkill adds what the skill does to such a request of a turn of req: its files whole, and the commands that they run at
	// once. Without a file the request cannot be allowed.
	ShowSkill(ctx context.Context, req Request, asked ApprovalAsked) ApprovalAsked
}

// Preparer is a Launcher of a place that must be made or reached first.
type Preparer interface {
	// Prepare makes the place if it is not there, and sees whether it works. Safe for concurrent use.
	Prepare(ctx context.Context) error
	// Doing says in a few words what making the place is busy with and takes long; empty for nothing. It does not wait.
	Doing() string
}

// FillReporter is a Session whose agent says between two turns, or in one, what fills its context.
type FillReporter interface {
	// Fill is how full the context is. It asks the agent. Safe for concurrent use.
	Fill(ctx context.Context) (Fill, error)
}

// Commander is a Session whose agent has commands of its own.
type Commander interface {
	// Commands lists them. It may ask the agent. Safe for concurrent use.
	Commands(ctx context.Context) ([]AgentCommand, error)
}

// AgentCommand is a command or a skill of an agent.
type AgentCommand struct {
	Name        string // as it is written, such as "/review"
	Description string // may be empty
	Arguments   string // what may follow the name, in the agent's words; empty where it says nothing of that
}

// Gatherer is a Process's output that can let a stream of many small pieces gather a little before it is read:
// an agent that writes word by word would otherwise wake us for each word. What comes after a silence, or in bulk, is
// read at once all the same. Safe for concurrent use with reads.
type Gatherer interface {
	// Gather begins that.
	Gather()
	// Hurry has what comes next read at once: somebody waits for it.
	Hurry()
}

// HomeSeed is something that a session finds in a home of its own.
type HomeSeed struct {
	// From is the owner's file, absolute. Empty: there is none, and Pick makes the content.
	From string
	// To is where it is in the home: a path with slashes, below it.
	To string
	// Link puts a link to From there, which may be a directory, in place of a copy. It is for log-ins that an agent
	// renews: of a copy that is renewed, the owner's is worthless from then on. A link that an agent replaced by a
	// file is put back; if the file is newer than the owner's, the owner gets its content before.
	Link bool
	// Pick says what of the owner's content is copied, or what is put there where the owner has nothing; nil copies it
	// as it is. An empty result is no file.
	Pick func(owner []byte) ([]byte, error)
}

// LostOutput says that a part of what a program printed cannot be had: more than was kept came while ductor
// did not read it, or the disk was full or damaged. A Process's Stdout gives it once and can be read on.
type LostOutput struct {
	From, To int64 // offsets in the output
	Reason   string
}

func (e *LostOutput) Error() string {
	return fmt.Sprintf("%d bytes of the output are lost: %s", e.To-e.From, e.Reason)
}
