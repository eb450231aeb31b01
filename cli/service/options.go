package service

import (
	"context"
	"log/slog"
	"time"

	"ductor/cli"
)

// Defaults of Options.
const (
	DefaultTimeout     = time.Hour
	DefaultIdleLimit   = 15 * time.Minute
	DefaultMemoryEvery = 15 * time.Second
	DefaultMenuTTL     = 5 * time.Minute
	DefaultMenuWait    = 15 * time.Second
)

// Options set up a Service. Providers, which are this host's, is required; zero values take the defaults.
type Options struct {
	Providers []cli.Provider
	Default   cli.Agent   // whom to ask when a conversation chose no agent; empty means the first provider
	Fallbacks []cli.Agent // who answers when Default cannot be used, in order; no other agent does
	Modes     map[cli.Agent]cli.Mode

	Timeout   time.Duration // of a turn whose Request says none
	Grace     time.Duration // what a session may take to end a cancelled turn; the providers' own
	IdleLimit time.Duration // an idle session is closed after it
	// MaxSessions is how many agent processes there may be, those included that are being started or ended; 0 is
	// no limit. Beyond it the longest idle one is ended, and where all are busy a turn waits for one of them.
	// Sessions that share a process count once, and a process whose turns all wait for their user does not count.
	MaxSessions int
	// Available is how many bytes agents may still take; nil is no limit. A process is started only where it has
	// what one of its agent was seen to take; where it has not, idle ones are ended and the turn waits. One may
	// always live.
	Available func() int64
	// MaxMemory is how many bytes the agents and all they started may hold; 0 is no limit. Beyond it idle ones
	// are ended, the longest idle one first. A busy one never is.
	MaxMemory   int64
	MemoryEvery time.Duration // between two looks at that; one follows each turn besides

	MenuTTL  time.Duration // how old a list of models may be
	MenuWait time.Duration // how long an agent may take to list them

	Launchers []cli.Launcher // of this host: where runs of the previous process of ductor may be found
	Homes     Homes          // gives each session a home of its own on this host; nil: all have the user's
	RunEnvs   []RunEnv       // where agents run besides; no request that names one ever runs elsewhere
	// OpenRunEnv opens a place that one conversation has for itself, when it is first asked for; false where there is to be
	// none. It does not wait. Nil: there are none but RunEnvs.
	OpenRunEnv func(cli.Sandbox) (RunEnv, bool)

	// Background stores that work in the background is open in a run or, where the Note is empty, that none is.
	Background func(ctx context.Context, start cli.Start) error
	// Began stores the id of a session that an agent began for ductor, whatever for. Nil stores none.
	Began func(ctx context.Context, id cli.AgentSessionID) error

	Registry *Registry // shared with the sweep; nil makes one
	Now      func() time.Time
	Logger   *slog.Logger
}

// RunEnv is a place agents run in besides this host: its launcher, and the dialects over it.
type RunEnv struct {
	Sandbox   cli.Sandbox
	Launcher  cli.Launcher
	Providers []cli.Provider
	Homes     Homes // nil: the place's own home serves all sessions
}

// Homes gives each session a home of its own in one place. Safe for concurrent use.
type Homes interface {
	// Home gives the absolute path of a session's home there, and makes it at need. It is called before each turn.
	Home(ctx context.Context, session string) (dir string, err error)
}
