// Command ductor-runner owns the agents inside containers, and keeps the homes of sessions and the files of agents and projects there.
// ductor copies it into each container. Build it with CGO_ENABLED=0, so that it runs in any. It is not a command for users.
package main

import (
	"fmt"
	"os"

	"ductor/cli/gemini/guard"
	"ductor/cli/stored/files"
	"ductor/docker/homes"
	"ductor/internal/rooted"
	"ductor/internal/runner"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: ductor-runner VERB ...; it is started by ductor")
		os.Exit(2)
	}
	switch args := os.Args[1:]; args[0] {
	case homes.Verb:
		os.Exit(homes.Main(args[1:], os.Stdin, os.Stdout))
	case files.Verb:
		os.Exit(files.Main(args[1:], os.Stdout))
	case rooted.Verb:
		os.Exit(rooted.Main(args[1:], os.Stdin, os.Stdout))
	case guard.Verb:
		os.Exit(guard.Main(args[1:], os.Stdout))
	default:
		os.Exit(runner.Inside(args, os.Stdin, os.Stdout, os.Stderr))
	}
}
