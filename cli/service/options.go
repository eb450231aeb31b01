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

// Settings configure which agents ductor uses, and for how long it keeps them. Zero values mean the defaults of
// Options.
type Settings struct {
	// Default is the agent for conversations that chose none. Empty means the first provider.
	Default cli.Agent `toml:"default" default:"claude"`
	// Fallback lists the agents that may replace an unusable Default, in order. Other agents never replace it.
	Fallback    []cli.Agent   `toml:"fallback" default:"['codex', 'gemini', 'copilot']"`
	TurnTimeout time.Duration `toml:"turn_timeout" default:"2h" check:"1s..168h"` // of a turn whose Request has none
	IdleLimit   time.Duration `toml:"idle_limit" default:"30m" check:"1s..720h"`  // after it an idle session is closed
	// MaxLive limits the number of agent processes, including those that are starting or ending. 0 means no limit.
	// Beyond the limit, ductor ends the process that was idle for the longest time. If all processes are busy, a turn
	// waits. Sessions that share a process count once. A process does not count while all its turns wait for their
	// users.
	MaxLive int `toml:"max_live" check:"0..256"`
	// MaxMemoryMB limits the memory of the agents and of everything they started. 0 means no limit. Beyond the limit,
	// ductor ends idle processes, those that were idle for the longest time first. It never ends busy processes for
	// this reason.
	MaxMemoryMB int `toml:"max_memory_mb" check:"0..1048576"`
}

// maxMemory returns the limit in bytes.
func (s Settings) maxMemory() int64 { return int64(s.MaxMemoryMB) << 20 }

// Options configure a Service. Providers is required; it has the agents of this host. Zero values of other fields mean
// the defaults.
type Options struct {
	Providers []cli.Provider
	Settings
	Modes map[cli.Agent]cli.Mode
	Grace time.Duration // time for a session to end a cancelled turn; equals the providers' own
	// Available returns how many bytes agents may still use. nil means no limit. ductor starts a process only if as
	// much memory is available as processes of that agent usually take. Otherwise it ends idle processes, and the turn
	// waits. One process may always run.
	Available   func() int64
	MemoryEvery time.Duration // between two measurements; another follows soon after each turn

	MenuTTL  time.Duration // maximum age of a list of models
	MenuWait time.Duration // limit of the time for listing models

	// Accounts are further log-ins of agents of this host. Other environments have only the default log-ins.
	Accounts []AccountProvider

	Launchers []cli.Launcher // of this host: they know the runs of the previous process of ductor
	Homes     Homes          // gives each session its own home on this host; nil: all use the user's
	RunEnvs   []RunEnv       // other environments; a request that names one never runs elsewhere
	// OpenRunEnv opens an environment that belongs to one conversation, when it is first needed. It returns false if
	// the conversation should have no such environment. It does not block. If OpenRunEnv is nil, only the environments
	// in RunEnvs exist.
	OpenRunEnv func(cli.Sandbox) (RunEnv, bool)

	// Background stores that a run has open background work. If the Note is empty, it stores that the run has none.
	Background func(ctx context.Context, start cli.Start) error
	// Began stores the ID of every session that an agent started for ductor. If it is nil, the IDs are not stored.
	Began func(ctx context.Context, id cli.AgentSessionID) error

	Registry *Registry // shared with the sweep; nil creates one
	Now      func() time.Time
	Logger   *slog.Logger
}

// AccountProvider is a provider whose agent uses a log-in other than the default one.
type AccountProvider struct {
	cli.AccountHome
	Provider cli.Provider
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
	// Home returns the absolute path of a session's home, and creates the home if needed. The Service calls it before
	// each turn.
	Home(ctx context.Context, session string) (dir string, err error)
}
