package cli

import (
	"context"
	"fmt"
)

// Measured is a Process that can measure its memory.
type Measured interface {
	// Memory returns the resident memory of the program and its descendants in bytes. It counts a shared page once for
	// each process.
	Memory(ctx context.Context) (int64, error)
}

// Lister is a Process that can list the processes that belong to it.
type Lister interface {
	// Processes lists the program and its descendants that are running, oldest first. It shortens a long list.
	Processes(ctx context.Context) ([]ProcessName, error)
}

// ProcessName is the name and ID of a process. A container has process IDs of its own.
type ProcessName struct {
	Name string
	PID  int
}

// Finder is a Launcher that can find its processes by their process IDs.
type Finder interface {
	// Find returns the agent's process with this ID. The Launcher must have started it or attached to it, and not
	// stopped it. Find returns nil if no such process exists.
	Find(agent Agent, pid int) Process
}

// Bringer is a Launcher that must copy files into its environment, because the environment does not see this host's
// files.
type Bringer interface {
	// Bring copies files and directories of this host to the same paths in the environment. It skips paths that exist
	// there. Safe for concurrent use.
	Bring(ctx context.Context, paths []string) error
}

// Helper is a Launcher whose environment has files that this host does not see. Helper accesses them by running
// ductor's own program in the environment.
type Helper interface {
	// Help runs ductor's own program with args in the environment, and creates the environment if needed. The program
	// gets the variables of env that an agent would get. Help returns the files that the program printed as JSON. It
	// returns nil if args asks for no files. The error of Help includes the program's error.
	Help(ctx context.Context, env []string, args ...string) (files []byte, err error)
}

// SkillReader is a Provider whose agent requests approval before it uses a skill, but sends only the skill's name.
type SkillReader interface {
	// SkillTool returns the name of the tool (ApprovalAsked.Tool) in a request for approval to use a skill.
	SkillTool() string
	// ShowSkill returns a copy of asked that shows all files of the skill, and the commands that the agent runs as soon
	// as it loads the skill. asked is a request for approval in a turn of req. If ShowSkill finds no files, users can
	// only deny the request.
	ShowSkill(ctx context.Context, req Request, asked ApprovalAsked) ApprovalAsked
}

// Preparer is a Launcher whose environment must be created or connected before use.
type Preparer interface {
	// Prepare creates or connects the environment if needed, and checks that it works. Safe for concurrent use.
	Prepare(ctx context.Context) error
	// Doing describes in a few words the slow step that Prepare is currently in. It returns "" at other times. It does
	// not block.
	Doing() string
}

// FillReporter is a Session whose agent can report, even during a turn, how full its context is.
type FillReporter interface {
	// Fill asks the agent how full its context is, and which parts fill it. Safe for concurrent use.
	Fill(ctx context.Context) (Fill, error)
}

// Commander is a Session whose agent has commands of its own.
type Commander interface {
	// Commands lists the commands. It may ask the agent. Safe for concurrent use.
	Commands(ctx context.Context) ([]AgentCommand, error)
}

// AgentCommand is a command or a skill of an agent.
type AgentCommand struct {
	Name        string // name of the command as users type it, such as "/review"
	Description string // may be empty
	Arguments   string // the agent's description of the arguments; may be empty
}

// Gatherer is the Stdout of a Process that can buffer small writes for a moment. Without buffering, an agent that
// writes word by word would wake ductor for each word. Large writes, and writes after a pause, are readable at once.
// Safe for concurrent use with reads.
type Gatherer interface {
	// Gather turns buffering on.
	Gather()
	// Hurry makes the next write readable at once, because a user waits for it.
	Hurry()
}

// HomeSeed describes a file that ductor creates in a session's own home directory. It usually comes from the home of
// the user who runs ductor, called the owner.
type HomeSeed struct {
	// From is the absolute path of the file in the owner's home. It is empty if that home has no such file; Pick then
	// creates the content.
	From string
	// To is the file's path in the session's home, with slashes.
	To string
	// Link creates a symbolic link to From instead of a copy. From may then be a directory. Credentials that the agent
	// renews need a link: if the agent renewed a copy, the original would become invalid.
	//
	// If an agent replaced the link by a file, ductor restores the link. If that file is newer than From, ductor first
	// copies the file's content to From.
	Link bool
	// Pick returns the content of the copy. Its argument is the content of From, or nil if From is empty. If Pick is
	// nil, ductor copies the file unchanged. If Pick returns no content, ductor creates no file.
	Pick func(owner []byte) ([]byte, error)
}

// LostOutput is the error that a part of a program's output is lost. This happens if the disk is full or damaged, or if
// the program prints more than the runner can store while ductor is not reading. Process.Stdout returns the error once;
// reads can continue after the error.
type LostOutput struct {
	From, To int64 // range of offsets in the output
	Reason   string
}

func (e *LostOutput) Error() string {
	return fmt.Sprintf("%d bytes of the output are lost: %s", e.To-e.From, e.Reason)
}
