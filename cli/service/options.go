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

// Settings configure which agents ductor uses, and how long it keeps them. Zero values mean the defaults of Options.
type Settings struct {
	// Default is the agent for conversations without a chosen agent. Empty means the first provider.
	Default cli.Agent `toml:"default" default:"claude"`
	// Fallback lists the agents that may replace an unusable Default, in order. No other agent replaces it.
	Fallback    []cli.Agent   `toml:"fallback" default:"['codex', 'gemini', 'copilot']"`
	TurnTimeout time.Duration `toml:"turn_timeout" default:"2h" check:"1s..168h"` // for a Request without a limit
	IdleLimit   time.Duration `toml:"idle_limit" default:"30m" check:"1s..720h"`  // until an idle session is closed
	// MaxLive limits the number of agent processes, including starting and ending ones. 0 means no limit. Beyond the
	// limit, ductor ends the least recently used idle process. If all processes are busy, a turn waits. Sessions in the
	// same process count once. A process does not count while all its turns wait for their users.
	MaxLive int `toml:"max_live" check:"0..256"`
	// MaxMemoryMB limits the memory of the agents and their descendants. 0 means no limit. Beyond the limit, ductor
	// ends idle processes, the least recently used first. It does not end busy processes.
	MaxMemoryMB int `toml:"max_memory_mb" check:"0..1048576"`
}

// maxMemory returns the limit in bytes.
func (s Settings) maxMemory() int64 { return int64(s.MaxMemoryMB) << 20 }

// Options configure a Service. Providers is required, and contains the agents of this host. Zero values of other fields
// mean the defaults.
type Options struct {
	Providers []cli.Provider
	Settings
	Modes map[cli.Agent]cli.Mode
	Grace time.Duration // for a session to end a cancelled turn; equals the providers' Grace
	// Available returns how many bytes agents may still use. nil means no limit. ductor starts a process only if the
	// usual memory of that agent's processes is available. Otherwise it ends idle processes, and the turn waits. One
	// process may always run.
	Available   func() int64
	MemoryEvery time.Duration // interval of measurements; ductor also measures after each turn

	MenuTTL  time.Duration // maximum age of a list of models
	MenuWait time.Duration // limit for listing models

	Launchers []cli.Launcher // launchers of this host, which know the runs of the previous process of ductor
	Homes     Homes          // gives each session its own home on this host; nil means the user's home
	RunEnvs   []RunEnv       // other environments; a request for one of them never runs elsewhere
	// OpenRunEnv opens the environment of one conversation at its first use. It returns false if the conversation is to
	// have none. It does not block. If it is nil, only the environments in RunEnvs exist.
	OpenRunEnv func(cli.Sandbox) (RunEnv, bool)

	// Background stores that a run has open background work, or no such work if the Note is empty.
	Background func(ctx context.Context, start cli.Start) error
	// Began stores the ID of each session that an agent started for ductor. nil stores nothing.
	Began func(ctx context.Context, id cli.AgentSessionID) error

	Registry *Registry // shared with the check for stale turns; nil creates a Registry
	Now      func() time.Time
	Logger   *slog.Logger
}

// RunEnv is an environment of agents other than this host: its launcher, and the dialects that use it.
type RunEnv struct {
	Sandbox   cli.Sandbox
	Launcher  cli.Launcher
	Providers []cli.Provider
	Homes     Homes // nil means that all sessions use the environment's own home
}

// Homes gives each session its own home in one environment. Safe for concurrent use.
type Homes interface {
	// Home returns the absolute path of a session's home, and creates the home if needed. The Service calls it before
	// each turn.
	Home(ctx context.Context, session string) (dir string, err error)
}
