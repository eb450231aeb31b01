package cli

import (
	"context"
	"fmt"
)

// Measured is a Process that can measure its memory.
type Measured interface {
	// Memory returns the resident bytes of the program and its descendants. It counts shared pages once for each
	// process.
	Memory(ctx context.Context) (int64, error)
}

// Lister is a Process that can list its running processes.
type Lister interface {
	// Processes names the running program and its running descendants, oldest first. A long list is cut.
	Processes(ctx context.Context) ([]ProcessName, error)
}

// ProcessName names a process in its own environment.
type ProcessName struct {
	Name string
	PID  int
}

// Finder is a Launcher that finds its processes by their process IDs.
type Finder interface {
	// Find returns a process of agent that this Launcher started or attached to, unless it was stopped. It returns nil
	// if no such process exists.
	Find(agent Agent, pid int) Process
}

// Bringer is a Launcher that copies files into its environment, which does not see the files of this host.
type Bringer interface {
	// Bring copies files and directories of this host to the same paths in the environment. It skips paths that already
	// exist there. Safe for concurrent use.
	Bring(ctx context.Context, paths []string) error
}

// Helper is a Launcher of an environment whose files this host does not see. It runs ductor's own program there to
// access them.
type Helper interface {
	// Help creates the environment if needed, and runs ductor's own program there with args. The program gets the
	// environment variables that an agent would get for env. Help returns the files that the program printed as JSON,
	// or nil if args asks for no files. Its error includes the program's error.
	Help(ctx context.Context, env []string, args ...string) (files []byte, err error)
}

// SkillReader is a Provider whose agent asks before it uses a skill, but sends only the skill's name.
type SkillReader interface {
	// SkillTool returns the name of the tool (ApprovalAsked.Tool) in requests to use a skill.
	SkillTool() string
	// ShowSkill adds the contents of the skill to a request from a turn of req. The contents are all files of the
	// skill, and the commands that they run at once. If ShowSkill finds no file, users cannot allow the request.
	ShowSkill(ctx context.Context, req Request, asked ApprovalAsked) ApprovalAsked
}

// Preparer is a Launcher of an environment that must be created or connected before use.
type Preparer interface {
	// Prepare creates the environment if it does not exist, and checks whether it works. Safe for concurrent use.
	Prepare(ctx context.Context) error
	// Doing describes in a few words the slow step that Prepare currently runs. It returns "" if there is none. It does
	// not block.
	Doing() string
}

// FillReporter is a Session whose agent can report the content of its context, even during a turn.
type FillReporter interface {
	// Fill asks the agent how full its context is. Safe for concurrent use.
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
	Arguments   string // the arguments after the name, in the agent's words; may be empty
}

// Gatherer is an output of a Process that can collect small pieces before they are read. Otherwise an agent that writes
// word by word would wake ductor for each word. A large piece, or output after a pause, can still be read at once. Safe
// for concurrent use with reads.
type Gatherer interface {
	// Gather starts collecting.
	Gather()
	// Hurry makes the next output readable at once, because a user waits for it.
	Hurry()
}

// HomeSeed describes a file that ductor creates in the home of a session.
type HomeSeed struct {
	// From is the absolute path of the owner's file. It is empty if the owner has no such file; Pick then creates the
	// content.
	From string
	// To is the file's path in the home, with slashes.
	To string
	// Link creates a link to From instead of a copy. From may then be a directory. A log-in that the agent renews needs
	// a link: renewing a copy would make the owner's log-in invalid.
	//
	// If an agent replaced the link by a file, ductor restores the link. If the file is newer than From, ductor first
	// copies its content to From.
	Link bool
	// Pick returns the content of the copy. Its argument is the content of From, or nil if the owner has no such file.
	// If Pick is nil, ductor copies the file unchanged. If Pick returns no content, ductor creates no file.
	Pick func(owner []byte) ([]byte, error)
}

// LostOutput is the error that a part of a program's output is lost. The disk was full or damaged, or the program
// printed more than the runner stores while ductor was not reading. A Process's Stdout returns the error once; reading
// can continue after that.
type LostOutput struct {
	From, To int64 // offsets in the output
	Reason   string
}

func (e *LostOutput) Error() string {
	return fmt.Sprintf("%d bytes of the output are lost: %s", e.To-e.From, e.Reason)
}
