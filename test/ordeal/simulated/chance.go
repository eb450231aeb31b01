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

// lastID is the time in the last identifier of version 7. Identifiers increase, but each bubble's clock starts again.
//
//go:linkname lastID github.com/google/uuid.lastV7time
var lastID int64

// SetChance derives all random values of a world from a seed, as far as Go's runtime allows. It does not determine
// which of several ready goroutines runs first.
func SetChance(t *testing.T, seed uint64) {
	cryptotest.SetGlobalRandom(t, seed)
	uuid.SetRand(rand.Reader)
	t.Cleanup(func() { uuid.SetRand(nil) })
	lastID = 0
	runtime.MemProfileRate = 0 // because it takes samples at random
	time.Local = time.UTC
}
