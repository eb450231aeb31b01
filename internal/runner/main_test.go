package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ductor/internal/testprogram"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "runner":
			os.Exit(Main(os.Args[2:], os.Stderr))
		case Hold, run, Connect, versionVerb:
			os.Exit(Inside(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		}
	}
	testprogram.Guard()
	races, err := watchRaces()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := testprogram.Run(m)
	if races() {
		code = 1
	}
	os.Exit(code)
}

// watchRaces lets the runners of tests report data races to files, because their standard error is not read. It also
// removes the second that a program with the race detector waits at its exit. The caller calls races at the end. It
// prints the reports and returns true if it finds one.
func watchRaces() (races func() bool, err error) {
	dir, err := os.MkdirTemp("", "races")
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 log_path="+filepath.Join(dir, "race")); err != nil {
		return nil, err
	}
	return func() bool {
		defer os.RemoveAll(dir)
		reports, _ := filepath.Glob(filepath.Join(dir, "race.*")) // the pattern is valid
		for _, report := range reports {
			text, err := os.ReadFile(report)
			if err != nil {
				text = []byte(err.Error())
			}
			fmt.Fprintf(os.Stderr, "a runner has a race:\n%s\n", text)
		}
		return len(reports) > 0
	}, nil
}
