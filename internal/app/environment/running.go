package environment

import (
	"context"
	"fmt"
	"io"
	"time"

	"ductor/docker"
	"ductor/internal/runner"
)

// Runs gives access to the runs of agents in one environment. Name is the name of a sandbox, or empty for this machine.
type Runs struct {
	Name string
	Root *runner.Client
}

const lookWait = 10 * time.Second

// Running returns the sandboxes in which agents may be running. If a sandbox is unreachable, Running writes a message
// to warnings.
func (s *Sandboxes) Running(ctx context.Context, warnings io.Writer) (runs []Runs) {
	for _, b := range s.All() {
		if !b.matters() {
			continue
		}
		if b.Launcher == nil {
			fmt.Fprintf(warnings, "ductor: the sandbox %s cannot be reached: %v\n", b.Name, b.Err)
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, lookWait)
		status, err := b.Launcher.Status(ctx)
		cancel()
		switch {
		case status.Is == docker.StateRunning:
			runs = append(runs, Runs{Name: b.Name, Root: b.Launcher.Runs()})
		case status.Is == docker.StatePaused:
			fmt.Fprintf(warnings, "ductor: the sandbox %s is paused and was skipped\n", b.Name)
		case err != nil:
			fmt.Fprintf(warnings, "ductor: the sandbox %s cannot be reached: %v\n", b.Name, err)
		}
	}
	return runs
}
