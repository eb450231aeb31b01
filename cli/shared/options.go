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
	StartLimit time.Duration // limit until a process is ready; 0 means DefaultStartLimit
	// Goodbye is how long a process may take to end after its input is closed. It applies if the last session ended
	// well. 0 means that the process is stopped at once.
	Goodbye time.Duration
}

// DefaultStartLimit is the default of Options.StartLimit. It is long, because a busy small machine is slow.
const DefaultStartLimit = 2 * time.Minute
