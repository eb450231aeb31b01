package shared

import (
	"time"

	"ductor/cli"
	"ductor/cli/frames"
)

// Options say how the processes of a dialect are started, spoken with and ended.
type Options struct {
	cli.ProviderOptions
	Agent      cli.Agent
	Framing    frames.Framing
	Version    string        // see rpc.Options
	StartLimit time.Duration // for a process to be ready; DefaultStartLimit when 0
	// Goodbye is how long a process that served its last session well may take to end once its input ends; 0 is no time.
	Goodbye time.Duration
}

// DefaultStartLimit is the default of Options.StartLimit: a small machine that is busy takes long.
const DefaultStartLimit = 2 * time.Minute
