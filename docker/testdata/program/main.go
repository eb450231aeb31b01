// Command program is what tests put into a container: the scripted agents under their names, and a simulated model
// that listens where it is told and then runs a command.
package main

import (
	"fmt"
	"os"

	"ductor/internal/sim/agent"
)

func main() {
	agent.RunIfChild()
	fmt.Fprintln(os.Stderr, "it must be called like an agent")
	os.Exit(2)
}
