// Command program is the program that tests put into containers. If it is called like an agent, it is a scripted agent.
// If it is called "model", it serves the API of the simulated model at the address in its argument.
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
