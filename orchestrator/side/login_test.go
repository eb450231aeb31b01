package side

import (
	"errors"
	"fmt"
	"testing"

	"ductor/cli"
	"ductor/lang"
)

// A failed log-in is explained in the user's language, without the name of the agent, which the message has already.
func TestReasonOf(t *testing.T) {
	german := lang.Language("de").Printer()
	for _, tc := range []struct {
		err  error
		want string
	}{
		{cli.Failf(cli.NotLoggedIn, "claude", "failure.login-refused"), "er hat die Anmeldung abgelehnt"},
		{&cli.Failure{Kind: cli.NotLoggedIn, Agent: "claude", Reason: "It was closed"}, "It was closed"},
		{&cli.Failure{Kind: cli.NotLoggedIn, Agent: "claude"},
			"Claude ist nicht angemeldet. Melde dich auf dem Rechner an."},
		{fmt.Errorf("store: %w", errors.New("the disk is full")), "store: the disk is full"},
	} {
		if got := reasonOf(german, tc.err); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}
