package app

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/roles"
)

// TestTheConfigurationKnowsTheRolesThatShip tests that sessions.default_role accepts exactly the shipped roles.
func TestTheConfigurationKnowsTheRolesThatShip(t *testing.T) {
	book := roles.Open("", config.Default().Roles, time.Now, slog.New(slog.DiscardHandler))
	if got, want := book.Names(), config.ShippedRoles(); !slices.Equal(got, want) {
		t.Errorf("%q ship, and the configuration knows %q", got, want)
	}
}
