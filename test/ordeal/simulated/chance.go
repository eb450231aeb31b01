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
// an earlier time, but the simulated clocks of all worlds start at the same time. So each world must reset lastID.
//
//go:linkname lastID github.com/google/uuid.lastV7time
var lastID int64

// SetChance makes the random numbers of a world depend on a seed. It does not control Go's runtime: if several
// goroutines can run, the seed does not determine which of them runs first.
func SetChance(t *testing.T, seed uint64) {
	cryptotest.SetGlobalRandom(t, seed)
	uuid.SetRand(rand.Reader)
	t.Cleanup(func() { uuid.SetRand(nil) })
	lastID = 0
	runtime.MemProfileRate = 0 // the seed would not determine which allocations the memory profiler samples
	time.Local = time.UTC
}
