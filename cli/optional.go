package cli

import (
	"context"
	"fmt"
)

// Measured is a Process that can measure its memory.
type Measured interface {
	// Memory returns the resident bytes of the program and everything it started; shared pages count for each process.
	Memory(ctx context.Context) (int64, error)
}

// Lister is a Process that can list its running processes.
type Lister interface {
	// Processes names the program and the processes it started that still run, the oldest first. If there are many, it
	// names some.
	Processes(ctx context.Context) ([]ProcessName, error)
}

// ProcessName names a process in its own environment.
type ProcessName struct {
	Name string
	PID  int
}

// Finder is a Launcher that finds its processes by their process IDs.
type Finder interface {
	// Find returns a process of agent that this Launcher started or attached to and that is not stopped; nil if there
	// is none.
	Find(agent Agent, pid int) Process
}

// Bringer is a Launcher of an environment that does not see this host's files.
type Bringer interface {
	// Bring copies files and directories of this host to the same paths in the environment. It skips those that are
	// already there. Safe for concurrent use.
	Bring(ctx context.Context, paths []string) error
}

// Helper is a Launcher of an environment whose files this host does not see. ductor's own program accesses them there.
type Helper interface {
	// Help creates the environment if needed and runs ductor's program there with args, in the environment variables
	// that a program would get for env. It returns the files that the program found, as JSON; nil if args asks for
	// none. It also returns errors of the program.
	Help(ctx context.Context, env []string, args ...string) (files []byte, err error)
}

// SkillReader is a Provider whose agent asks before it uses a skill, but sends only the skill's name.
type SkillReader interface {
	// SkillTool returns the Tool of such a request.
	SkillTool() string
	// ShowSkill adds the skill's contents to such a request of a turn of req: its whole files, and the commands that
	// they run at once. If it finds no file, the request cannot be allowed.
	ShowSkill(ctx context.Context, req Request, asked ApprovalAsked) ApprovalAsked
}

// Preparer is a Launcher of an environment that must first be created or connected.
type Preparer interface {
	// Prepare creates the environment if it does not exist, and checks whether it works. Safe for concurrent use.
	Prepare(ctx context.Context) error
	// Doing describes in a few words the slow step that Prepare is at; empty for none. It does not block.
	Doing() string
}

// FillReporter is a Session whose agent reports the content of its context, between turns or during one.
type FillReporter interface {
	// Fill returns how full the context is. It asks the agent. Safe for concurrent use.
	Fill(ctx context.Context) (Fill, error)
}

// Commander is a Session whose agent has commands of its own.
type Commander interface {
	// Commands lists the commands. It may ask the agent. Safe for concurrent use.
	Commands(ctx context.Context) ([]AgentCommand, error)
}

// AgentCommand is a command or a skill of an agent.
type AgentCommand struct {
	Name        string // as users write it, such as "/review"
	Description string // may be empty
	Arguments   string // the arguments after the name, in the agent's words; empty if it does not describe them
}

// Gatherer is a Process's output that can collect many small pieces before they are read: an agent that writes word by
// word would otherwise wake ductor for each word. Output after a pause, or in large pieces, is still read at once. Safe
// for concurrent use with reads.
type Gatherer interface {
	// Gather starts collecting.
	Gather()
	// Hurry lets the next output be read at once, because someone waits for it.
	Hurry()
}

// HomeSeed is a file that a session finds in its own home.
type HomeSeed struct {
	// From is the owner's file, absolute. If empty, there is none, and Pick creates the content.
	From string
	// To is the file's path in the home, with slashes.
	To string
	// Link creates a link to From instead of a copy; From may be a directory. It is for log-ins that an agent renews:
	// renewing a copy would make the owner's log-in invalid. If an agent replaced the link by a file, ductor restores
	// the link; if that file is newer than the owner's, the owner first gets its content.
	Link bool
	// Pick returns the content to copy from the owner's content, or the content if the owner has no file. nil copies
	// the content unchanged. An empty result creates no file.
	Pick func(owner []byte) ([]byte, error)
}

// LostOutput is the error that a part of a program's output is lost: the program printed more than is stored while
// ductor was not reading, or the disk was full or damaged. A Process's Stdout returns it once and can be read further.
type LostOutput struct {
	From, To int64 // offsets in the output
	Reason   string
}

func (e *LostOutput) Error() string {
	return fmt.Sprintf("%d bytes of the output are lost: %s", e.To-e.From, e.Reason)
}
