package service

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
)

// asks is a request of the conversation "a" with an account of the agent "fake".
func asks(account cli.Account) cli.Request {
	return cli.Request{Conversation: "a", Dir: "/x", Accounts: cli.Accounts{"fake": account}}
}

// loggedOut is an agent with a command to log in.
type loggedOut struct{ *fakeProvider }

func (loggedOut) Logins() []cli.Login {
	return []cli.Login{{Kind: cli.LoginByToken}, {Kind: cli.LoginByCommand, Command: "fake login"}}
}

func (p loggedOut) LogIn(context.Context, string, func(cli.DeviceCode)) error { return nil }

// withAccounts returns a service, and the providers of its agent's accounts: the default one, "home" and "work".
func withAccounts(t *testing.T, o Options) (s *Service, own, home, work *fakeProvider) {
	t.Helper()
	own, home, work = &fakeProvider{}, &fakeProvider{}, &fakeProvider{auth: func(context.Context) cli.Auth {
		return cli.Auth{State: cli.Installed, Fix: "Run `fake login`"}
	}}
	vars := cli.AccountVars{Home: "FAKE_HOME"}
	o.Accounts = []AccountProvider{
		{cli.AccountHome{Account: "home", Dir: "/homes/home", AccountVars: vars}, home},
		{cli.AccountHome{Account: "work", Dir: "/homes/my work", AccountVars: vars}, loggedOut{work}},
	}
	return newTestService(t, o, own), own, home, work
}

// A turn runs with its account, never in an idle session of another one or one opened ahead.
func TestAccountsShareNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, own, home, work := withAccounts(t, Options{})
		opened := func(want ...int) {
			t.Helper()
			for i, p := range []*fakeProvider{own, home, work} {
				if n := len(p.opened()); n != want[i] {
					t.Errorf("account %d has opened %d sessions, want %d", i, n, want[i])
				}
			}
		}
		resumed := func(account cli.Account) cli.Request { // each account has a session with this ID
			req := asks(account)
			req.Resume = "fake-1"
			return req
		}
		run(t, s, "fake", asks(""))
		run(t, s, "fake", resumed("home"))
		opened(1, 1, 0)
		run(t, s, "fake", resumed("home")) // in the same session
		opened(1, 1, 0)
		s.Warm("fake", resumed("work"))
		synctest.Wait()
		opened(1, 1, 1)
		run(t, s, "fake", resumed(""))
		opened(2, 1, 1)
		time.Sleep(time.Second)
		if r, _ := run(t, s, "fake", asks("gone")); r.Err == nil || r.Err.Kind != cli.NotInstalled ||
			!strings.Contains(r.Err.Error(), `no account "gone"`) {
			t.Errorf("an unknown account: %v", r.Err)
		}
		opened(2, 1, 1)
		closeService(t, s)
	})
}

// An environment with other homes refuses accounts. It does not use the default one instead.
func TestEnvironmentsWithoutAccountsRefuseThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := &fakeProvider{}
		s, own, home, _ := withAccounts(t, Options{RunEnvs: []RunEnv{web(&fakeSandbox{}, inside)}})
		req := asks("home")
		req.Sandbox = "web"
		if r, _ := run(t, s, "fake", req); r.Err == nil || r.Err.Kind != cli.Refused {
			t.Errorf("in a sandbox: %v", r.Err)
		}
		if all := s.Accounts(t.Context(), "web", "fake"); len(all) != 3 || all[0].Err != nil || all[1].Err == nil {
			t.Errorf("the accounts in a sandbox are %+v", all)
		}
		own2, home2 := len(own.opened())+len(inside.opened()), len(home.opened())
		if own2+home2 != 0 {
			t.Errorf("%d and %d sessions were opened", own2, home2)
		}
		closeService(t, s)

		s, own, home, _ = withAccounts(t, Options{Homes: fakeHomes{root: "/here"}})
		req = asks("home")
		req.Session = "s"
		r, _ := run(t, s, "fake", req)
		if r.Err == nil || r.Err.Kind != cli.Refused || len(own.opened())+len(home.opened()) > 0 {
			t.Errorf("where sessions have homes: %v", r.Err)
		}
		closeService(t, s)
	})
}

// A turn of an account that is not logged in names the account, and its own command or variable, not the default ones.
func TestAFailureNamesItsAccount(t *testing.T) {
	const advice = "Set FAKE_KEY by: ductor secret set fake.FAKE_KEY"
	for _, c := range []struct {
		ways         []cli.Login
		reason, want string
	}{
		{[]cli.Login{{Kind: cli.LoginByToken}, {Kind: cli.LoginByCommand, Command: "fake login"}}, advice,
			"Fake (work) is not logged in: Run env FAKE_HOME=/work fake login in a terminal of its machine."},
		{[]cli.Login{{Kind: cli.LoginByVariable, Variable: "FAKE_KEY"}}, advice,
			"Fake (work) is not logged in: Set FAKE_KEY by: ductor secret set fake@work.FAKE_KEY."},
		{[]cli.Login{{Kind: cli.LoginByAgent}}, advice, "Fake (work) is not logged in. Log in on the machine."},
		{nil, "the token expired", "Fake (work) is not logged in: the token expired. Log in on the machine."},
	} {
		at := &runEnv{}
		e := &agentEntry{runEnv: at, provider: wayProvider{&fakeProvider{}, c.ways},
			home: cli.AccountHome{Account: "work", Dir: "/work", AccountVars: cli.AccountVars{Home: "FAKE_HOME"}}}
		f := &cli.Failure{Kind: cli.NotLoggedIn, Agent: "fake", Reason: c.reason}
		if got := e.named(f).Error(); got != c.want {
			t.Errorf("%v: %q, want %q", c.ways, got, c.want)
		}
		e.home = cli.AccountHome{}
		if got := e.named(f); got != f {
			t.Errorf("the default account: %v", got)
		}
	}
}

// wayProvider is an agent with ways to log in.
type wayProvider struct {
	*fakeProvider
	ways []cli.Login
}

func (p wayProvider) Logins() []cli.Login { return p.ways }

func (wayProvider) LogIn(context.Context, string, func(cli.DeviceCode)) error { return nil }

// The log-in of an account, its menu and its command for a terminal are those of its home.
func TestAccountsAreLoggedInApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _, _ := withAccounts(t, Options{})
		const login = "env 'FAKE_HOME=/homes/my work' fake login"
		all := s.Accounts(t.Context(), "", "fake")
		if len(all) != 3 || all[0].Auth.State != cli.Authenticated || all[1].Account != "home" ||
			all[2].Auth.State != cli.Installed || all[2].Auth.Fix != "Run `"+login+"` on this machine" {
			t.Errorf("the accounts are %+v", all)
		}
		if e := s.Menu(t.Context(), "", cli.Accounts{"fake": "work"})[0]; e.Account != "work" || e.Err == nil {
			t.Errorf("the menu of work has %+v", e)
		}
		if e := s.Menu(t.Context(), "", nil)[0]; e.Account != "" || e.Err != nil {
			t.Errorf("the menu of the default account has %+v", e)
		}
		ways := s.Logins("", "fake", "work")
		if len(ways) != 2 || ways[0].Account != "work" || ways[1].Command != login {
			t.Errorf("the ways to log in are %+v", ways)
		}
		agent, instead, err := s.Default(t.Context(), "", cli.Accounts{"fake": "home"})
		if agent != "fake" || instead != nil || err != nil {
			t.Errorf("with a usable account: %s, %v, %v", agent, instead, err)
		}
		if _, _, err := s.Default(t.Context(), "", cli.Accounts{"fake": "work"}); err == nil {
			t.Error("an account without a log-in counts as usable")
		}
		closeService(t, s)
	})
}

// If a sandbox refuses the account of a fallback, the next fallback answers, with the failure of the default agent.
func TestAFallbackWithARefusedAccountIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := AccountProvider{cli.AccountHome{Account: "work", Dir: "/w", AccountVars: cli.AccountVars{Home: "H"}},
			&fakeProvider{agent: "b"}}
		inside := web(&fakeSandbox{}, inState("a", cli.Installed), &fakeProvider{agent: "b"}, &fakeProvider{agent: "c"})
		s := newTestService(t, Options{Settings: Settings{Default: "a", Fallback: []cli.Agent{"b", "c"}},
			RunEnvs:  []RunEnv{inside},
			Accounts: []AccountProvider{work}}, &fakeProvider{agent: "a"}, &fakeProvider{agent: "b"})
		of := cli.Accounts{"b": "work"}
		agent, instead, err := s.Default(t.Context(), "web", of)
		if agent != "c" || instead == nil || instead.Agent != "a" || err != nil {
			t.Errorf("the default is %s, instead of %v, %v", agent, instead, err)
		}
		if agent, _ := s.Substitute(t.Context(), "web", of, []cli.Agent{"a"}); agent != "c" {
			t.Errorf("the substitute is %q", agent)
		}
		if agent, _ := s.Substitute(t.Context(), "web", nil, []cli.Agent{"a"}); agent != "b" {
			t.Errorf("the substitute with the default account is %q", agent)
		}
		closeService(t, s)

		s, _, _, _ = withAccounts(t, Options{})
		if agent, _ := s.Substitute(t.Context(), "", cli.Accounts{"fake": "work"}, nil); agent != "" {
			t.Errorf("an account without a log-in is a substitute: %q", agent)
		}
		if agent, _ := s.Substitute(t.Context(), "", cli.Accounts{"fake": "home"}, nil); agent != "fake" {
			t.Errorf("the substitute is %q", agent)
		}
		closeService(t, s)
	})
}
