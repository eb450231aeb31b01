package cli

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperVar makes the test binary play one of the programs of helpers_test.go instead of running tests.
const helperVar = "CLI_TEST_HELPER"

func TestMain(m *testing.M) {
	if name := os.Getenv(helperVar); name != "" {
		os.Exit(runHelper(name))
	}
	goleak.VerifyTestMain(m)
}
