package proctree

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// End waits for processes that no scan finds while the kernel reports a populated group.
func TestEndWaitsForAnEmptyControlGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		group := Group{Path: t.TempDir()}
		tell := func(populated string) {
			if err := os.WriteFile(filepath.Join(group.Path, "cgroup.events"), []byte("populated "+populated+"\n"),
				0o600); err != nil {
				t.Error(err)
			}
		}
		tell("1")
		const wait = 50 * time.Millisecond
		time.AfterFunc(wait, func() { tell("0") })
		began := time.Now()
		if err := In(group).End(t.Context(), 10*time.Second); err != nil || time.Since(began) < wait {
			t.Errorf("ended after %s, %v", time.Since(began), err)
		}
	})
}
