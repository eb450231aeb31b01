package render

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// The laws are cheap, so they run more often than rapid's default. -rapid.checks overrides that.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "400"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
