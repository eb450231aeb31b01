package realagent

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"ductor/internal/testprogram"
)

// Some returns those of the agents, or of the ways to run one, that a test drives: the first alone, since a session of a real agent or
// in a container takes seconds of a processor. scripts/test --long has them all.
func Some[T any](all ...T) []T {
	if testprogram.Long() {
		return all
	}
	return all[:1]
}

// SomeOf is Some, in the order of their names, with what the test has for each.
func SomeOf[K cmp.Ordered, V any](all map[K]V) map[K]V {
	some := Some(slices.Sorted(maps.Keys(all))...)
	maps.DeleteFunc(all, func(name K, _ V) bool { return !slices.Contains(some, name) })
	return all
}

// LongOnly leaves a test to scripts/test --long.
func LongOnly(t testing.TB) {
	t.Helper()
	if !testprogram.Long() {
		t.Skip("scripts/test --long runs it")
	}
}
