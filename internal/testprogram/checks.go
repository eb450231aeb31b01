package testprogram

import (
	"flag"
	"strconv"
)

// Checks sets how often rapid tries a property. scripts/test --long uses rapid's default of a hundred. The flag
// -rapid.checks has priority. Call Checks in TestMain.
func Checks(n int) {
	if Long() {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
