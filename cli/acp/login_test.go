package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
)

const allMethods = `[{"id":"browser","name":"Log in with a browser"},` +
	`{"id":"tty","name":"In a terminal","type":"terminal","args":["--login","it's me"],"env":{"LOGIN":"1"}},` +
	`{"id":"key","name":"With a key","type":"env_var","vars":[{"name":"PEER_KEY"}]},` +
	`{"name":"without an id"}, {"id":"old","type":"terminal","env":["not of this version"]}, 17]`

// An agent that needs a log-in says so in one sentence, with the first way that it offers.
func TestAnAgentThatNeedsALogIn(t *testing.T) {
	const key = "Set PEER_KEY by: ductor secret set test.PEER_KEY."
	for methods, want := range map[string]string{
		"":     "Test is not logged in: Authentication required. Log in on the machine.",
		`"no"`: "Test is not logged in: Authentication required. Log in on the machine.",
		`[{"id":"key","type":"env_var","vars":[{"name":"PEER_KEY"}]}]`: "Test is not logged in: " + key,
		`[{"id":"tty","type":"terminal"}]`: "Test is not logged in: " +
			"Run peer acp in a terminal of its machine.",
		allMethods: "Test is not logged in: Log in from /model in the chat.",
	} {
		provider, p := play(t, func(o *Options) { o.Args, o.Agent = []string{"acp"}, "test" })
		p.methods = methods
		p.locked.Store(true)
		_, err := provider.Open(t.Context(), cli.Live, wish(t, "hi"))
		if err == nil || err.Error() != want {
			t.Errorf("with the methods %s it says\n%v, want\n%s", methods, err, want)
		}
		if a := provider.Auth(t.Context()); a.State != cli.Installed || !strings.Contains(want, ": "+a.Fix+".") {
			t.Errorf("its log-in is %+v", a)
		}
	}
	provider, p := play(t, func(o *Options) { o.Args = []string{"acp"} })
	p.methods = allMethods
	open(t, provider, wish(t, "hi"))
	if got := provider.Logins(); !slices.Equal(got, []cli.Login{
		{ID: "browser", Name: "Log in with a browser", Kind: cli.LoginByAgent},
		{Name: "In a terminal", Kind: cli.LoginByCommand, Command: `env LOGIN=1 peer acp --login 'it'\''s me'`},
		{Name: "With a key", Kind: cli.LoginByVariable, Variable: "PEER_KEY"},
	}) {
		t.Errorf("it can be logged in by %+v", got)
	}
}

// ductor reads a bounded number of methods, and shows short names. A method with a long word is left out.
func TestManyMethods(t *testing.T) {
	long := strings.Repeat("x", maxWord+1)
	list := []string{fmt.Sprintf(`{"id":%q}`, long), fmt.Sprintf(`{"id":"a","type":"terminal","args":[%q]}`, long),
		fmt.Sprintf(`{"id":"b","type":"env_var","vars":[{"name":%q}]}`, long),
		fmt.Sprintf(`{"id":"c","type":"terminal","env":{%q:"1"}}`, long)}
	for i := range maxMethods + 5 {
		list = append(list, fmt.Sprintf(`{"id":"m%d","name":%q}`, i, long))
	}
	provider, p := play(t, nil)
	p.methods = "[" + strings.Join(list, ",") + "]"
	open(t, provider, wish(t, "hi"))
	got := provider.Logins()
	if len(got) != maxMethods || got[0].ID != "m0" || len(got[0].Name) > maxWord+len("…") {
		t.Errorf("%d log-ins: %+v", len(got), got)
	}
}

// A process that needs a log-in logs in by the configured method, and by the one that a user chose last.
func TestAMethodThatNeedsNoUser(t *testing.T) {
	for _, chosen := range []bool{false, true} {
		provider, p := play(t, func(o *Options) {
			if !chosen {
				o.AuthMethod = "browser"
			}
		})
		p.methods = allMethods
		logIn := func() { // the agent's answer
			m := p.hear(methodLogin)
			if string(m.Params) != `{"methodId":"browser"}` {
				t.Errorf("ductor sent %s", m.Params)
			}
			p.locked.Store(false)
			p.say(`{"id":%s,"result":{}}`, m.ID)
		}
		if chosen {
			logged := make(chan error)
			go func() { logged <- provider.LogIn(t.Context(), "browser", nil) }()
			logIn()
			if err := <-logged; err != nil {
				t.Fatal(err)
			}
		}
		p.locked.Store(true)
		opened := make(chan error)
		go func() {
			s, err := provider.Open(t.Context(), cli.Live, wish(t, "hi"))
			if err == nil {
				err = s.Close(t.Context())
			}
			opened <- err
		}()
		logIn()
		if err := <-opened; err != nil {
			t.Error(err)
		}
	}
}

// memory is a LoginMemory.
type memory struct{ text string }

func (m *memory) LoadLogin() (string, error) { return m.text, nil }

func (m *memory) SaveLogin(text string) error {
	m.text = text
	return nil
}

// A provider that replaces another one, because a setting changed, logs in as that one did. So does the provider of the
// next process of ductor. With another program, method or variables, they do not.
func TestASuccessorLogsInByTheSameMethod(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"another model":    {func(o *Options) { o.Models = []cli.Model{{ID: "m"}} }, "browser"},
		"other arguments":  {func(o *Options) { o.Args = []string{"--more"} }, "browser"},
		"another program":  {func(o *Options) { o.Path = "/other" }, ""},
		"a method":         {func(o *Options) { o.AuthMethod = "key" }, "key"},
		"another variable": {func(o *Options) { o.AllowEnv = []string{"API_KEY"} }, ""},
		"a key": {func(o *Options) {
			o.AllowEnv, o.Env = []string{"API_KEY"}, func() []string { return []string{"API_KEY=x"} }
		}, ""},
	} {
		options := Options{ProviderOptions: cli.ProviderOptions{
			Path: "/agent", Env: func() []string { return []string{"PATH=/bin"} },
		}, Agent: "mine", Memory: &memory{}}
		former := New(options)
		if err := former.remember("browser"); err != nil {
			t.Fatal(err)
		}
		former.login.methods.Store(&[]cli.Login{{ID: "browser", Kind: cli.LoginByAgent}})
		c.change(&options)
		p := New(options)
		if got := p.authMethod(&p.opts, cli.Request{}); got != c.want {
			t.Errorf("after a restart with %s it logs in by %q", name, got)
		}
		p = New(options)
		p.Succeed(former)
		got, all := p.authMethod(&p.opts, cli.Request{}), p.Logins()
		if got != c.want || (len(all) == 1) != (c.want == "browser") {
			t.Errorf("with %s it logs in by %q, and offers %v", name, got, all)
		}
	}
}

// A log-in that fails, that does not exist or that never ends has a clear message, and a user can cancel it.
func TestALogInThatDoesNotWork(t *testing.T) {
	for _, tc := range []struct {
		method, want string
		answer       string // to the log-in; empty: none
		limit        time.Duration
	}{
		{method: "browser", answer: `"error":{"code":-32603,"message":"It was closed"}`, want: "It was closed"},
		{method: "browser", limit: 2 * time.Second, want: "it did not finish the log-in within 2 s"},
		{method: "tty", want: `it has no log-in "tty" that ductor can start`},
		{method: "nonsense", want: `it has no log-in "nonsense"`},
		{method: "browser", want: "context canceled"},
	} {
		provider, p := play(t, func(o *Options) { o.Start = tc.limit })
		p.methods = allMethods
		ctx, cancel := context.WithCancel(t.Context())
		logged := make(chan error)
		go func() { logged <- provider.LogIn(ctx, tc.method, nil) }()
		switch {
		case tc.method != "browser": // it is not sent
		case tc.answer != "":
			p.say(`{"id":%s,%s}`, p.hear(methodLogin).ID, tc.answer)
		default:
			p.hear(methodLogin)
			if tc.limit == 0 {
				cancel()
			}
		}
		err := <-logged
		cancel()
		var f *cli.Failure
		if err == nil || !strings.Contains(err.Error(), tc.want) ||
			tc.answer != "" && (!errors.As(err, &f) || f.Kind != cli.NotLoggedIn) {
			t.Errorf("%+v: %v", tc, err)
		}
		select {
		case m := <-p.lines:
			if m.Method != methodCancelRequest { // it gave up waiting
				t.Errorf("ductor also sent %s", m.Method)
			}
		default:
		}
	}
}

// Anybody can create settings in the directory for temporary files. They do not keep ductor from asking an agent for its
// log-in and its models, because that happens in a directory of ductor.
func TestAnAgentIsProbedInADirectoryOfDuctor(t *testing.T) {
	_, file := projectIn(t)
	own := t.TempDir()
	t.Setenv("TMPDIR", filepath.Dir(filepath.Dir(file)))
	probes := filepath.Join(own, "probes")
	provider, p := play(t, func(o *Options) {
		o.Project, o.StartDir = Project{Files: []string{".sim/"}}, probes
	})
	p.methods = allMethods
	if a := provider.Auth(t.Context()); a.State != cli.Authenticated {
		t.Errorf("its log-in is %+v", a)
	}
	if _, err := provider.Models(t.Context()); err != nil {
		t.Error(err)
	}
	logged := make(chan error)
	go func() { logged <- provider.LogIn(t.Context(), "browser", nil) }()
	p.say(`{"id":%s,"result":{}}`, p.hear(methodLogin).ID)
	if err := <-logged; err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(probes); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v, %v", info, err)
	}
}
