package shared

import (
	"time"

	"ductor/cli"
	"ductor/cli/frames"
	"ductor/cli/rpc"
)

// Options configure the processes of a dialect.
type Options struct {
	cli.ProviderOptions
	Agent      cli.Agent
	Framing    frames.Framing
	Codec      rpc.Codec     // nil means rpc.JSON{}
	Cancels    string        // see rpc.Options
	StartLimit time.Duration // time until a process is ready; 0 means DefaultStartLimit
	// Goodbye is how long a process may take to end after its input was closed. It applies if the last session ended
	// normally. 0 stops the process at once.
	Goodbye time.Duration
}

// DefaultStartLimit is the default of Options.StartLimit. It allows for a busy small machine.
const DefaultStartLimit = 2 * time.Minute
