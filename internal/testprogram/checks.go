package testprogram

import (
	"flag"
	"strconv"
)

// Checks sets how often the package rapid tests a property. scripts/test --long uses rapid's own default, 100. The flag
// -rapid.checks overrides both. Call Checks in TestMain.
func Checks(n int) {
	if Long() {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
