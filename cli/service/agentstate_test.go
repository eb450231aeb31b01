package service

import (
	"context"
	"strings"
	"testing"

	"ductor/cli"
)

func TestAgentsSayWhatTheyAreGoodFor(t *testing.T) {
	s := serve(t, &fakeProvider{auth: func(context.Context) cli.Auth {
		return cli.Auth{State: cli.Authenticated, Path: "/bin/fake", Version: "1.2", Method: "a key"}
	}})
	got := s.Agents(t.Context(), "")
	if len(got) != 1 || !got[0].Usable() || got[0].String() != "/bin/fake 1.2, logged in by a key, live" {
		t.Errorf("%+v", got)
	}
	closeService(t, s)
	for _, c := range []struct {
		auth cli.Auth
		want string
	}{
		{cli.Auth{State: cli.Installed, Path: "/bin/fake", Fix: "Log in."}, "/bin/fake is not logged in. Log in."},
		{cli.Auth{State: cli.NotFound, Fix: "Install it."}, "not found. Install it."},
	} {
		if state := (cli.AgentState{Auth: c.auth}); state.Usable() || !strings.HasPrefix(state.String(), c.want) {
			t.Errorf("%q, want %q", state.String(), c.want)
		}
	}
}
