// Command publish writes docs/reliability.md from the results of runs in test/ordeal/results. It runs in the root of the repository.
package main

import (
	"fmt"
	"os"

	"ductor/test/ordeal/report"
)

func main() {
	results, err := report.Load("test/ordeal/results")
	if err == nil {
		err = os.WriteFile("docs/reliability.md", []byte(report.Page(results)), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}
