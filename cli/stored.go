package cli

import (
	"context"
	"time"
)

// StoredSession is a session as an agent keeps it in its own files, also one that a user began in a terminal.
type StoredSession struct {
	Agent       Agent
	ID          AgentSessionID
	Dir         string
	First, Last string    // the first prompt and the last one that is known, each in one line
	Used        time.Time // when its file changed last
}

// SessionKeeper is a Provider whose agent keeps its sessions in files and resumes them in a terminal.
type SessionKeeper interface {
	// StoredSessions lists the newest sessions that the agent keeps for a directory, the newest first. It starts no agent, and
	// damaged or foreign files neither fail nor delay it.
	StoredSessions(ctx context.Context, dir string) ([]StoredSession, error)
	// ResumeCommand gives the words of a command line that resumes a session in a terminal, where its directory is the current one.
	ResumeCommand(id AgentSessionID) []string
}

// Enterer is a Launcher of an environment that users enter from a terminal of this host.
type Enterer interface {
	// Enter gives the words of a command line that runs in a directory there what the words after it say; home is HOME there, empty
	// for that of the environment.
	Enter(dir, home string) []string
}
