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

// lastID is the time in the last identifier of version 7. Each is later than the one before, and the clocks of bubbles begin anew.
//
//go:linkname lastID github.com/google/uuid.lastV7time
var lastID int64

// SetChance has all that a world leaves to chance decided by a seed, as far as the runtime of Go lets it: which of several goroutines
// that can run runs first is not.
func SetChance(t *testing.T, seed uint64) {
	cryptotest.SetGlobalRandom(t, seed)
	uuid.SetRand(rand.Reader)
	t.Cleanup(func() { uuid.SetRand(nil) })
	lastID = 0
	runtime.MemProfileRate = 0 // its samples are taken by chance
	time.Local = time.UTC
}
