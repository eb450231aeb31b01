package proctree

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// Whom no look finds is waited for while the kernel says that somebody is left.
func TestEndTakesTheKernelsWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		alone := make(chan struct{})
		const wait = 50 * time.Millisecond
		time.AfterFunc(wait, func() { close(alone) })
		began := time.Now()
		unseen := &Tree{alone: alone, self: os.Getpid(), known: map[ID]bool{}}
		if err := unseen.End(t.Context(), 10*time.Second); err != nil || time.Since(began) < wait {
			t.Errorf("ended after %s, %v", time.Since(began), err)
		}
	})
}
