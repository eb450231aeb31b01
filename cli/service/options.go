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

// Options configure a Service. Providers, the agents of this host, is required; zero values mean the defaults.
type Options struct {
	Providers []cli.Provider
	Default   cli.Agent   // the agent for conversations that chose none; empty means the first provider
	Fallbacks []cli.Agent // agents that may replace an unusable Default, in order; no other agent does
	Modes     map[cli.Agent]cli.Mode

	Timeout   time.Duration // of a turn whose Request has none
	Grace     time.Duration // time for a session to end a cancelled turn; equals the providers' own
	IdleLimit time.Duration // after it an idle session is closed
	// MaxSessions limits the agent processes, including those that are starting or ending; 0 is no limit. Beyond the
	// limit the longest idle process is ended; if all are busy, a turn waits for one of them. Sessions that share a
	// process count once. A process whose turns all wait for their users does not count.
	MaxSessions int
	// Available returns how many bytes agents may still use; nil is no limit. A process is only started if its agent's
	// observed size is available. Otherwise idle processes are ended and the turn waits. One process may always live.
	Available func() int64
	// MaxMemory limits the bytes of the agents and everything they started; 0 is no limit. Beyond it idle processes are
	// ended, the longest idle one first. Busy ones never are.
	MaxMemory   int64
	MemoryEvery time.Duration // between two measurements; there is also one soon after each turn

	MenuTTL  time.Duration // maximum age of a list of models
	MenuWait time.Duration // limit of the time for listing models

	Launchers []cli.Launcher // of this host: they know the runs of the previous process of ductor
	Homes     Homes          // gives each session its own home on this host; nil: all use the user's
	RunEnvs   []RunEnv       // other environments; a request that names one never runs elsewhere
	// OpenRunEnv opens an environment that belongs to one conversation, when it is first needed; false if there should
	// be none. It does not block. nil: there are none but RunEnvs.
	OpenRunEnv func(cli.Sandbox) (RunEnv, bool)

	// Background stores that a run has open background work or, if the Note is empty, that it has none.
	Background func(ctx context.Context, start cli.Start) error
	// Began stores the ID of every session that an agent started for ductor. nil stores none.
	Began func(ctx context.Context, id cli.AgentSessionID) error

	Registry *Registry // shared with the sweep; nil creates one
	Now      func() time.Time
	Logger   *slog.Logger
}

// RunEnv is an environment of agents other than this host: its launcher, and the dialects that use it.
type RunEnv struct {
	Sandbox   cli.Sandbox
	Launcher  cli.Launcher
	Providers []cli.Provider
	Homes     Homes // nil: the environment's own home serves all sessions
}

// Homes gives each session its own home in one environment. Safe for concurrent use.
type Homes interface {
	// Home returns the absolute path of a session's home, and creates it if needed. It is called before each turn.
	Home(ctx context.Context, session string) (dir string, err error)
}
