package clitest

import (
	"slices"
	"strings"
	"testing"

	"ductor/cli"
)

// OwnHomeEnvironment tests a provider's function environment, which returns the environment of an agent. Its arguments
// are the environment of ductor's owner, the names of the variables that the configuration allows, and the request.
//
// If a session has its own home, no variable may contain a path in the owner's home, except the entries in kept. In the
// owner's environment, HOME and the variables in vars contain such a path.
func OwnHomeEnvironment(t *testing.T, vars []string,
	environment func(owner, allowed []string, req cli.Request) []string, kept ...string) {
	t.Helper()
	owner := []string{"HOME=/home/me", "PATH=/bin", "XDG_CONFIG_HOME=/home/me/.config"}
	allowed := []string{"HOME", "XDG_*"}
	for _, name := range vars {
		owner, allowed = append(owner, name+"=/home/me/.c"), append(allowed, name)
	}
	shared := environment(owner, allowed, cli.Request{})
	for _, entry := range owner {
		if !slices.Contains(shared, entry) {
			t.Errorf("in the owner's home %s is not there: %q", entry, shared)
		}
	}
	own := environment(owner, allowed, cli.Request{Home: "/homes/s",
		Env: map[string]string{"HOME": "/home/me", "EXTRA": "1"}})
	if cli.Variable(own, "HOME") != "/homes/s" || cli.Variable(own, "EXTRA") != "1" || !slices.IsSorted(own) {
		t.Errorf("in a home of its own: %q", own)
	}
	for _, entry := range own {
		if strings.Contains(entry, "/home/me") && !slices.Contains(kept, entry) {
			t.Errorf("%s leads back", entry)
		}
	}
}
