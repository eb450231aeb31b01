package cli

import (
	"context"
	"time"
)

// StoredSession is a session that an agent stored in its own files. The user may have started it in a terminal.
type StoredSession struct {
	Agent       Agent
	Account     Account // the Service sets it
	ID          AgentSessionID
	Dir         string
	First, Last string    // the first prompt and the last known one, each in one line; both the title if it has one
	Used        time.Time // when its file last changed
}

// SessionKeeper is a Provider whose agent keeps its sessions and may resume them in a terminal.
type SessionKeeper interface {
	// StoredSessions lists the sessions that the agent stored for a directory, newest first. It lists only a limited
	// number. It starts an agent only if that is the only way to know. Damaged files and files of other programs
	// neither make it fail nor delay it.
	StoredSessions(ctx context.Context, dir string) ([]StoredSession, error)
	// ResumeCommand returns the words of a command line that resumes a session in a terminal, in its directory. It
	// returns nothing if there is no such command.
	ResumeCommand(id AgentSessionID) []string
}

// Enterer is a Launcher of an environment that users can enter from a terminal of this host.
type Enterer interface {
	// Enter returns the words of a command line that runs further words, which the caller appends, in a directory of
	// the environment. home is HOME there. Empty means the environment's own HOME.
	Enter(dir, home string) []string
}
