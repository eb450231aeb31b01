package service

import (
	"context"
	"errors"
	"testing"

	"ductor/cli"
)

// keeperProvider has stored sessions.
type keeperProvider struct {
	*fakeProvider
	err error // in place of one session
}

func (p keeperProvider) StoredSessions(context.Context, string) ([]cli.StoredSession, error) {
	if p.err != nil {
		return nil, p.err
	}
	return []cli.StoredSession{{Agent: p.agent, ID: "one"}}, nil
}

func (keeperProvider) ResumeCommand(cli.AgentSessionID) []string { return nil }

// An agent that cannot be asked for its sessions is left out. Unreadable files are an error if no agent lists sessions.
func TestSessionsOfAgentsThatFail(t *testing.T) {
	loggedOut, unreadable := cli.Failf(cli.NotLoggedIn, "a", ""), errors.New("permission denied")
	for _, tt := range []struct {
		a, b  error
		want  int
		fails bool
	}{
		{nil, nil, 2, false}, {loggedOut, nil, 1, false}, {loggedOut, loggedOut, 0, false}, {unreadable, nil, 1, false},
		{errors.Join(loggedOut, nil), loggedOut, 0, false}, {unreadable, loggedOut, 0, true},
	} {
		s, err := New(Options{Providers: []cli.Provider{
			keeperProvider{&fakeProvider{agent: "a"}, tt.a}, keeperProvider{&fakeProvider{agent: "b"}, tt.b},
		}})
		if err != nil {
			t.Fatal(err)
		}
		all, err := s.StoredSessions(t.Context(), "", nil, t.TempDir())
		if len(all) != tt.want || (err != nil) != tt.fails {
			t.Errorf("%v, %v: %+v, %v", tt.a, tt.b, all, err)
		}
		closeService(t, s)
	}
}

// A session that is in the homes of several accounts is listed once: of the conversation's account, else of the default.
func TestCopiedSessionsAreListedOnce(t *testing.T) {
	home := func(account cli.Account) AccountProvider {
		return AccountProvider{cli.AccountHome{Account: account, Dir: "/" + string(account)},
			keeperProvider{&fakeProvider{agent: "a"}, nil}}
	}
	s, err := New(Options{
		Providers: []cli.Provider{
			keeperProvider{&fakeProvider{agent: "a"}, nil}, keeperProvider{&fakeProvider{agent: "b"}, nil},
		},
		Accounts: []AccountProvider{home("home"), home("work")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, account := range []cli.Account{"", "home", "work"} {
		all, err := s.StoredSessions(t.Context(), "", cli.Accounts{}.With("a", account), t.TempDir())
		if err != nil || len(all) != 2 || all[0].Agent != "a" || all[0].Account != account || all[1].Agent != "b" {
			t.Errorf("with the account %q: %+v, %v", account, all, err)
		}
	}
	closeService(t, s)
}
