package realagent

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"ductor/internal/testprogram"
)

// Some returns the test cases to run. Without scripts/test --long it returns only the first case, because each session
// of a real agent takes seconds of CPU time.
func Some[T any](all ...T) []T {
	if testprogram.Long() {
		return all
	}
	return all[:1]
}

// SomeOf is Some for cases in a map. Without scripts/test --long it returns only the case with the smallest key.
func SomeOf[K cmp.Ordered, V any](all map[K]V) map[K]V {
	some := Some(slices.Sorted(maps.Keys(all))...)
	maps.DeleteFunc(all, func(name K, _ V) bool { return !slices.Contains(some, name) })
	return all
}

// LongOnly skips the test unless scripts/test --long runs it.
func LongOnly(t testing.TB) {
	t.Helper()
	if !testprogram.Long() {
		t.Skip("scripts/test --long runs it")
	}
}
