package host_test

import (
	"os"
	"testing"

	"ductor/cli/clitest"
)

// helperVar makes the test binary run one of the programs of helpers_test.go instead of the tests.
const helperVar = "CLI_TEST_HELPER"

func TestMain(m *testing.M) {
	if name := os.Getenv(helperVar); name != "" {
		os.Exit(runHelper(name))
	}
	_ = os.Unsetenv(clitest.ProgramVar) // here runners are built with the race detector too
	clitest.Main(m)
}
