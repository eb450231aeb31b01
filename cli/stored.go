package cli

import (
	"context"
	"time"
)

// StoredSession is a session in an agent's own files. A user may have started it in a terminal.
type StoredSession struct {
	Agent       Agent
	ID          AgentSessionID
	Dir         string
	First, Last string    // the first and the last known prompt, each in one line; the session's title replaces both
	Used        time.Time // when its file last changed
}

// SessionKeeper is a Provider whose agent stores its sessions. The agent may be able to resume them in a terminal.
type SessionKeeper interface {
	// StoredSessions lists the newest sessions that the agent stored for a directory, newest first. Their number is
	// limited. It starts an agent only if it cannot find the sessions otherwise. It skips damaged files and files of
	// other programs quickly.
	StoredSessions(ctx context.Context, dir string) ([]StoredSession, error)
	// ResumeCommand returns the words of a command line that resumes a session in a terminal, in the session's
	// directory. It returns nil if the agent has no such command.
	ResumeCommand(id AgentSessionID) []string
}

// Enterer is a Launcher of an environment that users can enter from a terminal of this host.
type Enterer interface {
	// Enter returns the start of a command line that runs a command in a directory of the environment. The caller
	// appends the command. home is the command's HOME; empty means the environment's own.
	Enter(dir, home string) []string
}
