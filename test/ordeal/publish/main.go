// Command publish writes docs/reliability.md from the results in test/ordeal/results. Run it in the root directory of
// the repository.
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
