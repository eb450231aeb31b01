package app

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/roles"
)

// The configuration accepts the roles that ship with ductor as sessions.default_role, and no others that do not exist.
func TestTheConfigurationKnowsTheRolesThatShip(t *testing.T) {
	if got, want := roles.Open("", config.Default().Roles, time.Now, slog.New(slog.DiscardHandler)).Names(), config.ShippedRoles(); !slices.Equal(got, want) {
		t.Errorf("%q ship, and the configuration knows %q", got, want)
	}
}
