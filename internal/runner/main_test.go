package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

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
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if races() {
			code = 1
		}
		os.Exit(code)
	}))
}

// watchRaces has the runners that tests start report their races into files, for their standard error is not read, and
// end without the second that a program with the race detector lingers. What it returns prints the reports, and says
// whether there are any.
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
		reports, _ := filepath.Glob(filepath.Join(dir, "race.*")) // a pattern of our own is not malformed
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
