package cli

import (
	"context"
	"time"
)

// StoredSession is a session in an agent's own files, including sessions that a user started in a terminal.
type StoredSession struct {
	Agent       Agent
	ID          AgentSessionID
	Dir         string
	First, Last string    // the first prompt and the last known one, each in one line
	Used        time.Time // when its file last changed
}

// SessionKeeper is a Provider whose agent stores its sessions in files and resumes them in a terminal.
type SessionKeeper interface {
	// StoredSessions lists the newest sessions that the agent stored for a directory, the newest first. It starts no
	// agent. Damaged or foreign files neither fail nor delay it.
	StoredSessions(ctx context.Context, dir string) ([]StoredSession, error)
	// ResumeCommand returns the words of a command line that resumes a session in a terminal, in its directory.
	ResumeCommand(id AgentSessionID) []string
}

// Enterer is a Launcher of an environment that users enter from a terminal of this host.
type Enterer interface {
	// Enter returns the words of a command line that runs the words after it in a directory of the environment. home is
	// HOME there; empty means the environment's own.
	Enter(dir, home string) []string
}
