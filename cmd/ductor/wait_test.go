package main

import (
	"strings"
	"testing"
	"time"
)

// eventually looks again and again: what it waits for happens in processes that no fake clock reaches.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventuallyIn(t, patience, what, ok)
}

// eventuallyIn returns eventually for what takes longer than tests wait otherwise.
func eventuallyIn(t testing.TB, most time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(most); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

// capital returns the name of an agent as chats show it.
func capital(agent string) string { return strings.ToUpper(agent[:1]) + agent[1:] }
