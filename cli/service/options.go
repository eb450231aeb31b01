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

// Settings configures which agents ductor uses, and how long it keeps their sessions. Zero values mean the defaults of
// Options.
type Settings struct {
	// Default is the agent for conversations in which the user has chosen none. Empty means the first provider.
	Default cli.Agent `toml:"default" default:"claude"`
	// Fallback lists the agents that replace Default if it is unusable, in this order.
	Fallback    []cli.Agent   `toml:"fallback" default:"['codex', 'gemini', 'copilot']"`
	TurnTimeout time.Duration `toml:"turn_timeout" default:"2h" check:"1s..168h"` // limit if Request.Timeout is 0
	IdleLimit   time.Duration `toml:"idle_limit" default:"30m" check:"1s..720h"`  // how long a session may be idle
	// MaxLive limits the number of agent processes, including those that are starting or ending. 0 means no limit. If
	// the limit is reached, ductor ends the least recently used idle process. If no process is idle, the turn waits. A
	// process that several sessions share counts once. A process does not count while all its turns wait for users.
	MaxLive int `toml:"max_live" check:"0..256"`
	// MaxMemoryMB limits the memory of all agents and their descendants together. 0 means no limit. If they exceed the
	// limit, ductor ends idle processes, the least recently used first. It never ends busy processes.
	MaxMemoryMB int `toml:"max_memory_mb" check:"0..1048576"`
}

// maxMemory returns MaxMemoryMB in bytes.
func (s Settings) maxMemory() int64 { return int64(s.MaxMemoryMB) << 20 }

// Options configures a Service. Only Providers, which lists the providers of this host, is required. Zero values of
// other fields mean the defaults.
type Options struct {
	Providers []cli.Provider
	Settings
	Modes map[cli.Agent]cli.Mode
	Grace time.Duration // how long a session may take to end a cancelled turn; equals the providers' Grace
	// Available returns how many more bytes of memory agents may use. nil means no limit. If a new process would
	// probably need more memory, ductor does not start it: the turn waits, and ductor ends idle processes. If no
	// process is running, ductor always starts one.
	Available   func() int64
	MemoryEvery time.Duration // interval between measurements; ductor also measures after each turn

	MenuTTL  time.Duration // how long answers of agents are cached
	MenuWait time.Duration // how long ductor waits for an agent to answer a query, such as one for its models

	// Accounts lists the log-ins of this host's agents besides their default ones. Other environments have only the
	// default log-ins.
	Accounts []AccountProvider

	Launchers []cli.Launcher // launchers of this host
	Homes     Homes          // gives each session its own home on this host; nil means the user's home
	RunEnvs   []RunEnv       // other environments; a request for one of them never runs elsewhere
	// OpenRunEnv creates the environment that belongs to one conversation, when a turn first uses it. It returns
	// false if there should be no such environment. It does not block. If OpenRunEnv is nil, only the environments in
	// RunEnvs exist.
	OpenRunEnv func(cli.Sandbox) (RunEnv, bool)

	// Background stores whether a run has background work. The run has such work if start.Note is not empty. If
	// Background is nil, ductor stores nothing.
	Background func(ctx context.Context, start cli.Start) error
	// Began stores the ID of each session that an agent creates for ductor. If Began is nil, nothing is stored.
	Began func(ctx context.Context, id cli.AgentSessionID) error
	// Flush returns once the data that ductor has stored will survive a power failure. nil means that stored data
	// always survives.
	Flush func(ctx context.Context) error

	Registry *Registry // shared with the code that ends turns that run too long; nil creates a Registry
	Now      func() time.Time
	Logger   *slog.Logger
}

// AccountProvider is a provider that uses an account other than the default one.
type AccountProvider struct {
	cli.AccountHome
	Provider cli.Provider
}

// RunEnv is an environment other than this host, with its launcher and its providers.
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
