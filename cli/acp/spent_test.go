package acp

import (
	"fmt"
	"testing"

	"ductor/cli"
)

// With too many sessions, the cost that was reported first is forgotten.
func TestTheCostsOfManySessions(t *testing.T) {
	var s spent
	for i := range maxSpent + 1 {
		s.record(cli.AgentSessionID(fmt.Sprint(i)), float64(i))
		s.record("0", float64(i)) // it is reported again and again
	}
	if got := s.cost("0"); got == nil || *got != maxSpent {
		t.Errorf("session 0 cost %v", got)
	}
	if got := s.cost("2"); got == nil || *got != 2 {
		t.Errorf("session 2 cost %v", got)
	}
	if got := s.cost("1"); got != nil || len(s.totals) != maxSpent || len(s.order) != maxSpent {
		t.Errorf("session 1 cost %v, and %d sessions are remembered", got, len(s.totals))
	}
}
