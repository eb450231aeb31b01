package runner

import (
	"os"
	"testing"

	"go.uber.org/goleak"
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
	goleak.VerifyTestMain(m)
}
