package realagent

import (
	"cmp"
	"maps"
	"slices"
	"testing"
)

// Some are those of the agents, or of the ways to run one, that a test drives: with -short the first alone, since a session
// of a real agent or in a container takes seconds of a processor. scripts/test --long has them all.
func Some[T any](all ...T) []T {
	if testing.Short() {
		return all[:1]
	}
	return all
}

// SomeOf is Some, in the order of their names, with what the test has for each.
func SomeOf[K cmp.Ordered, V any](all map[K]V) map[K]V {
	some := Some(slices.Sorted(maps.Keys(all))...)
	maps.DeleteFunc(all, func(name K, _ V) bool { return !slices.Contains(some, name) })
	return all
}

// LongOnly leaves a test to scripts/test --long: with -short it is skipped.
func LongOnly(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("scripts/test --long runs it")
	}
}
