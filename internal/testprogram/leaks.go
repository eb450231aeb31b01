package testprogram

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests and exits. It fails if goroutines are left at the end. Call it in TestMain.
func Main(m goleak.TestingM) { os.Exit(Run(m)) }

// Run runs the tests and returns their exit code. If the tests passed but goroutines are left, it returns a failure.
func Run(m goleak.TestingM) int {
	code := m.Run()
	if code != 0 {
		return code
	}
	if err := FindLeaks(); err != nil {
		fmt.Fprintln(os.Stderr, "the tests passed, but:", err)
		return 1
	}
	return 0
}

// FindLeaks returns an error that lists the goroutines that are left. Goroutines may need time to end, so FindLeaks
// waits for them. goleak alone waits less than half a second, which is too short on a busy machine.
func FindLeaks(options ...goleak.Option) error {
	for deadline := time.Now().Add(exitPatience); ; {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
