package cli

import (
	"context"
	"time"
)

// StoredSession is a session that an agent has stored in its own files. A user may have started it in a terminal.
type StoredSession struct {
	Agent       Agent
	Account     Account // set by the Service
	ID          AgentSessionID
	Dir         string
	First, Last string    // the first and last prompt, each in one line; both are the title if no prompt is known
	Used        time.Time // when the session's file last changed
}

// SessionKeeper is a Provider whose agent stores its sessions in files.
type SessionKeeper interface {
	// StoredSessions lists the newest sessions that the agent has stored for a directory, newest first. Their number is
	// limited. StoredSessions skips damaged files and files of other programs. It starts the agent only if there is no
	// other way to find the sessions.
	StoredSessions(ctx context.Context, dir string) ([]StoredSession, error)
	// ResumeCommand returns a command line that resumes the session in a terminal, to be run in the session's
	// directory. It returns nil if the agent has no such command.
	ResumeCommand(id AgentSessionID) []string
}

// Enterer is a Launcher whose environment users can enter from a terminal of this host.
type Enterer interface {
	// Enter returns the start of a command line that runs a command in directory dir of the environment. The caller
	// appends that command. home is the command's HOME; empty means the environment's own.
	Enter(dir, home string) []string
}
