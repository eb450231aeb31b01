package testprogram

import (
	"flag"
	"strconv"
)

// Checks sets how often rapid tries a property with other values; scripts/test --long has its default of a hundred. The flag -rapid.checks
// overrides it. Call it in TestMain.
func Checks(n int) {
	if Long() {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
