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
	// Processes names those processes that still run: the program and the processes it started, oldest first. If the
	// list is long, it is incomplete.
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
	// Help creates the environment if needed, and runs ductor's own program there with args. The program gets the
	// environment variables that an agent would get for env. Help returns the files that the program found, as JSON, or
	// nil if args asks for none. It also returns the program's errors.
	Help(ctx context.Context, env []string, args ...string) (files []byte, err error)
}

// SkillReader is a Provider whose agent asks before it uses a skill, but sends only the skill's name.
type SkillReader interface {
	// SkillTool returns the Tool of a request to use a skill.
	SkillTool() string
	// ShowSkill adds the skill's contents to a request to use it, from a turn of req: the skill's whole files, and the
	// commands that they run at once. If ShowSkill finds no file, users cannot allow the request.
	ShowSkill(ctx context.Context, req Request, asked ApprovalAsked) ApprovalAsked
}

// Preparer is a Launcher of an environment that must first be created or connected.
type Preparer interface {
	// Prepare creates the environment if it does not exist, and checks whether it works. Safe for concurrent use.
	Prepare(ctx context.Context) error
	// Doing describes in a few words the slow step that Prepare is in. It returns "" if Prepare is in no slow step. It
	// does not block.
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

// Gatherer is a Process's output that can collect many small pieces before they are read. Without it, an agent that
// writes word by word would wake ductor for each word. Output after a pause, or in large pieces, is still read at once.
// Safe for concurrent use with reads.
type Gatherer interface {
	// Gather starts collecting.
	Gather()
	// Hurry lets the next output be read at once, because someone waits for it.
	Hurry()
}

// HomeSeed is a file that a session finds in its own home.
type HomeSeed struct {
	// From is the absolute path of the owner's file. If it is empty, the owner has no such file, and Pick creates the
	// content.
	From string
	// To is the file's path in the home, with slashes.
	To string
	// Link creates a link to From instead of a copy. From may then be a directory. Log-ins that an agent renews need a
	// link: an agent that renews a copy makes the owner's log-in invalid.
	//
	// If an agent replaced the link by a file, ductor restores the link. If that file is newer than From, ductor first
	// copies its content to From.
	Link bool
	// Pick returns the content of the copy. It gets the content of From, or nil if the owner has no such file. If Pick
	// is nil, ductor copies the file unchanged. If Pick returns no content, ductor creates no file.
	Pick func(owner []byte) ([]byte, error)
}

// LostOutput is the error that a part of a program's output is lost. This happens if the disk was full or damaged, or
// if the program printed more than the runner stores while ductor was not reading. A Process's Stdout returns it once;
// reading can continue after that.
type LostOutput struct {
	From, To int64 // offsets in the output
	Reason   string
}

func (e *LostOutput) Error() string {
	return fmt.Sprintf("%d bytes of the output are lost: %s", e.To-e.From, e.Reason)
}
