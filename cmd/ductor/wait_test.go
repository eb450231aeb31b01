package main

import (
	"strings"
	"testing"
	"time"
)

// eventually polls ok: it waits for processes, which a fake clock cannot control.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventuallyIn(t, patience, what, ok)
}

// eventuallyIn is eventually with another limit.
func eventuallyIn(t testing.TB, most time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(most); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

// capital returns the name of an agent with a capital letter, as chats show it.
func capital(agent string) string { return strings.ToUpper(agent[:1]) + agent[1:] }
