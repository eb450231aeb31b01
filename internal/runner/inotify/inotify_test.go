package inotify

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Each waiter gets one call after a write, and the second function of a waiter replaces the first.
func TestArm(t *testing.T) {
	w, err := New()
	if err != nil {
		t.Skip(err)
	}
	var serving sync.WaitGroup
	serving.Go(w.Serve)
	defer serving.Wait()
	defer w.Close()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	calls := make(chan string, 9)
	for _, waiter := range []string{"a", "b"} {
		for _, call := range []string{"replaced", waiter} {
			if err := w.Arm(path, waiter, func() { calls <- call }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 { // nothing is armed at the second write
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int{}
	for range 2 {
		select {
		case call := <-calls:
			got[call]++
		case <-time.After(time.Minute):
			t.Fatalf("only %v", got)
		}
	}
	if got["a"] != 1 || got["b"] != 1 || len(calls) > 0 {
		t.Errorf("%v, and %d more", got, len(calls))
	}
}
