package turn_test

import (
	"os"
	"testing"

	"ductor/cli/clitest"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv(clitest.ProgramVar) // here runners are built with the race detector too
	clitest.Main(m)
}
