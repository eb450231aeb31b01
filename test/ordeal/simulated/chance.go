package simulated

import (
	"crypto/rand"
	"runtime"
	"testing"
	"testing/cryptotest"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/google/uuid"
)

// lastID is a variable of package uuid: the time in the newest version 7 UUID. Package uuid never returns a UUID with
// an earlier time. Since the simulated clock starts at the same time in every scenario, SetChance resets lastID.
//
//go:linkname lastID github.com/google/uuid.lastV7time
var lastID int64

// SetChance makes the random numbers of a scenario depend on a seed. It does not control Go's runtime: if several
// goroutines can run, the seed does not determine which of them runs first.
func SetChance(t *testing.T, seed uint64) {
	cryptotest.SetGlobalRandom(t, seed)
	uuid.SetRand(rand.Reader)
	t.Cleanup(func() { uuid.SetRand(nil) })
	lastID = 0
	runtime.MemProfileRate = 0 // turn off the memory profiler, whose random samples do not depend on the seed
	time.Local = time.UTC
}
