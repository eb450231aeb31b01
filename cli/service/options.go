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

// Settings configure which agents ductor uses, and for how long. Zero values mean the defaults of Options.
type Settings struct {
	// Default is the agent for conversations that chose none; empty means the first provider.
	Default cli.Agent `toml:"default" default:"claude"`
	// Fallback lists agents that may replace an unusable Default, in order. No other agent does.
	Fallback    []cli.Agent   `toml:"fallback" default:"['codex', 'gemini', 'copilot']"`
	TurnTimeout time.Duration `toml:"turn_timeout" default:"2h" check:"1s..168h"` // of a turn whose Request has none
	IdleLimit   time.Duration `toml:"idle_limit" default:"30m" check:"1s..720h"`  // after it an idle session is closed
	// MaxLive limits the agent processes, also starting and ending ones; 0 is no limit. Beyond the limit ductor ends the
	// longest idle process. If all are busy, a turn waits. Sessions that share a process count once. A process whose
	// turns all wait for their users does not count.
	MaxLive int `toml:"max_live" check:"0..256"`
	// MaxMemoryMB limits the memory of the agents and everything they started; 0 is no limit. Beyond it idle processes
	// are ended, the longest idle one first. Busy ones never are.
	MaxMemoryMB int `toml:"max_memory_mb" check:"0..1048576"`
}

// maxMemory returns the limit in bytes.
func (s Settings) maxMemory() int64 { return int64(s.MaxMemoryMB) << 20 }

// Options configure a Service. Providers, the agents of this host, is required; zero values mean the defaults.
type Options struct {
	Providers []cli.Provider
	Settings
	Modes map[cli.Agent]cli.Mode
	Grace time.Duration // time for a session to end a cancelled turn; equals the providers' own
	// Available returns how many bytes agents may still use; nil is no limit. A process is only started if its agent's
	// observed size is available. Otherwise idle processes are ended and the turn waits. One process may always live.
	Available   func() int64
	MemoryEvery time.Duration // between two measurements; another follows soon after each turn

	MenuTTL  time.Duration // maximum age of a list of models
	MenuWait time.Duration // limit of the time for listing models

	Launchers []cli.Launcher // of this host: they know the runs of the previous process of ductor
	Homes     Homes          // gives each session its own home on this host; nil: all use the user's
	RunEnvs   []RunEnv       // other environments; a request that names one never runs elsewhere
	// OpenRunEnv opens an environment that belongs to one conversation, when it is first needed. It returns false if
	// the conversation should have none. It does not block. nil means that RunEnvs are all environments.
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
