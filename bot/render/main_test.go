package render

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// The laws are cheap: they are tried more often than rapid would by itself. -rapid.checks overrides it.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "400"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
