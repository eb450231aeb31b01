package conversation_test

import (
	"testing"

	"ductor/cli"
)

// A user who chooses a permission mode sees which part of it the agent does not support.
func TestWhatTheAgentCannotDoIsSaid(t *testing.T) {
	h := open(t)
	p, err := h.Permissions(t.Context(), here)
	if err != nil || p.Agent != "claude" || len(p.Cannot) != 1 || p.Cannot[cli.Plan] != "it has no plan mode" {
		t.Errorf("permissions are %+v, %v", p, err)
	}
}
