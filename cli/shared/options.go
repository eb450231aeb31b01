package shared

import (
	"time"

	"ductor/cli"
	"ductor/cli/frames"
	"ductor/cli/rpc"
)

// Options configures the processes of a provider.
type Options struct {
	cli.ProviderOptions
	Agent   cli.Agent
	Framing frames.Framing
	Codec   rpc.Codec // nil means rpc.JSON{}
	Cancels string    // method that cancels a request; empty if the protocol has none
	// Goodbye is how long a process may take to exit after ductor closed its input. ductor closes the input when the
	// last session leaves normally. 0 means that ductor stops the process at once.
	Goodbye time.Duration
}

// DefaultStartLimit is the default time for a process to become ready. It suffices on a small, busy machine.
const DefaultStartLimit = 2 * time.Minute
