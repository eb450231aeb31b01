// Command ductor-runner runs agents inside containers. It also manages the home directories of sessions and the files
// of agents and projects there. ductor copies ductor-runner into each container. Build it with CGO_ENABLED=0, so that
// it runs in every container.
//
// If the program is in the same directory as ductor, ductor also uses it to run the agents on this machine and to
// connect them to ductor's tools. The program needs a sixth of the memory that ductor itself would need as a runner.
// Users do not start the program.
package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"ductor/cli/claude/skills"
	"ductor/cli/gemini/guard"
	"ductor/cli/stored/files"
	"ductor/docker/homes"
	"ductor/internal/rooted"
	"ductor/internal/runner"
	"ductor/mcp/relay"
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
	case skills.Verb:
		os.Exit(skills.Main(args[1:], os.Stdout))
	case guard.Verb:
		os.Exit(guard.Main(args[1:], os.Stdout))
	case relay.Verb:
		os.Exit(relayTools(args[1:]))
	case relay.ServerVerb:
		fmt.Fprintln(os.Stderr, relay.StartServer(args[1:]))
		os.Exit(1)
	default:
		os.Exit(runner.Inside(args, os.Stdin, os.Stdout, os.Stderr))
	}
}

// relayTools connects an agent to ductor's tools. In a container, args contains the directory of the runner. On this
// machine args is empty, and the environment contains the directory of ductor.
func relayTools(args []string) int {
	dir, dial := os.Getenv(relay.DirVar), relay.Dial
	if len(args) == 1 {
		dir, dial = args[0], runner.DialTools
	}
	if len(args) > 1 || dir == "" {
		fmt.Fprintln(os.Stderr, "usage: ductor-runner "+relay.Verb+" [DIR]; agents start it")
		return 2
	}
	r := relay.Relay{Token: os.Getenv(relay.TokenVar),
		Dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, dir) }}
	if err := r.Run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, relay.Verb+":", err)
		return 1
	}
	return 0
}
