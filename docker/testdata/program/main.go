// Command program is what tests put into a container: the scripted agents under their names, and under the name
// model the simulated model's API, which listens where it is told.
package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"ductor/internal/sim/agent"
	"ductor/internal/sim/modelapi"
)

func main() {
	agent.RunIfChild()
	if filepath.Base(os.Args[0]) != "model" || len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "it must be called like an agent, or model ADDRESS")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Args[1], modelapi.New(modelapi.Options{}).Handler()))
	os.Exit(1)
}
