// Command ductor-supervisor supervises runs inside containers, and keeps the homes of sessions and the files of agents
// there. ductor copies it into each container. Build it with CGO_ENABLED=0, so that it runs in any. It is not a command
// for users.
package main

import (
	"fmt"
	"os"

	"ductor/cli/gemini/guard"
	"ductor/docker/homes"
	"ductor/internal/supervisor"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(supervisor.Main(os.Args[2:], os.Stderr))
		case homes.Verb:
			os.Exit(homes.Main(os.Args[2:], os.Stdin, os.Stdout))
		case guard.Verb:
			os.Exit(guard.Main(os.Args[2:], os.Stdout))
		}
	}
	fmt.Fprintln(os.Stderr, "usage: ductor-supervisor supervise ...; it is started by ductor")
	os.Exit(2)
}
