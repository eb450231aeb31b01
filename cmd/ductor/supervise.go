package main

import (
	"os"

	"ductor/internal/supervisor"
)

// superviseArg makes this program a supervisor of one agent. It is not a command of cobra's: a supervisor
// is started for every run, and nobody types it.
const superviseArg = "supervise"

// superviseIfAsked is the whole life of a supervisor. It returns when this process is not to be one.
func superviseIfAsked() {
	if len(os.Args) > 1 && os.Args[1] == superviseArg {
		os.Exit(supervisor.Main(os.Args[2:], os.Stderr))
	}
}
