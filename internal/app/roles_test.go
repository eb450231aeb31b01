package app

import (
	"log/slog"
	"slices"
	"testing"

	"ductor/internal/config"
)

// The configuration accepts the roles that ship with ductor as sessions.default_role, and no others that do not exist.
func TestTheConfigurationKnowsTheRolesThatShip(t *testing.T) {
	if got, want := rolesOf(config.Default(), slog.New(slog.DiscardHandler)).Names(), config.ShippedRoles(); !slices.Equal(got, want) {
		t.Errorf("%q ship, and the configuration knows %q", got, want)
	}
}
