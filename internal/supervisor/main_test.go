package supervisor

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperVar makes the test binary play one of the programs of helpers_test.go instead of running tests.
const helperVar = "SUPERVISOR_TEST_HELPER"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(Main(os.Args[2:], os.Stderr))
	}
	if name := os.Getenv(helperVar); name != "" {
		code, err := runHelper(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
