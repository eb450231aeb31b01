package runner

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "runner" {
		os.Exit(Main(os.Args[2:], os.Stderr))
	}
	goleak.VerifyTestMain(m)
}
