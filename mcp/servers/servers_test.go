package servers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/sim/toolserver"
	"ductor/lang"
	"ductor/mcp/relay"
	"ductor/mcp/servers"
)

// The test binary is also the servers, and the program that starts them.
func TestMain(m *testing.M) {
	toolserver.RunIfAsked()
	if len(os.Args) > 1 && os.Args[1] == relay.ServerVerb {
		fmt.Fprintln(os.Stderr, relay.StartServer(os.Args[2:]))
		os.Exit(1)
	}
	clitest.Main(m)
}

// rig has a Checker over servers of this test binary, and a clock.
type rig struct {
	*servers.Checker
	later atomic.Int64 // how far the clock is ahead
}

func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.later.Load())) }

func newRig(t *testing.T, all map[string]servers.Settings) *rig {
	t.Helper()
	r, launcher := &rig{}, clitest.Host(t)
	r.Checker = servers.New(servers.Options{
		Servers: all, Now: r.now, Logger: slog.New(slog.DiscardHandler),
		Lookup: func(server, variable string) (string, bool) { v, ok := os.LookupEnv(variable); return v, ok },
		Place: func(in cli.Sandbox) (servers.Place, error) {
			if in == "gone" {
				return servers.Place{}, errors.New("it is not configured")
			}
			return servers.Place{
				Launcher: launcher, Program: []string{self(t),
					relay.ServerVerb}, Dir: t.TempDir(), Offline: in == "offline",
				Env: func(extra map[string]string) []string {
					return cli.ChildEnv(os.Environ(),
						cli.BaseEnv(), extra)
				},
			}, nil
		},
	})
	t.Cleanup(r.Close)
	return r
}

// absent returns why each server is not given, by name.
func (r *rig) absent(t *testing.T, in cli.Sandbox) map[string]string {
	t.Helper()
	given, absent := r.For(t.Context(), cli.Request{Sandbox: in},
		func(name string) bool { return name != "unwanted" })
	all := map[string]string{}
	for _, s := range absent {
		all[s.Name] = s.Why
	}
	for _, s := range given {
		all[s.Name] = "given"
	}
	return all
}

func program(args ...string) servers.Settings {
	return servers.Settings{Command: os.Args[0], Args: append([]string{toolserver.Verb}, args...),
		Timeout: time.Minute}
}

// A turn gets the servers that answer. Each other one has its reason, and everything that a check started is gone.
func TestServersThatMisbehaveAreAbsent(t *testing.T) {
	t.Setenv("GREETING_KEY", "Bearer of tea")
	web := httptest.NewServer(toolserver.Handler("Bearer of tea"))
	defer web.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client left
		<-r.Context().Done()
	}))
	defer silent.Close()
	words := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprintln(w, "welcome")
	}))
	defer words.Close()
	var stolen atomic.Bool // the headers
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		stolen.Store(r.Header.Get("Authorization") != "")
	}))
	defer thief.Close()
	moved := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	mute := servers.Settings{URL: silent.URL, Timeout: time.Second}
	authorized := func(url string) servers.Settings {
		return servers.Settings{URL: url, Headers: []string{"Authorization: ${GREETING_KEY}"},
			Env: []string{"GREETING_KEY"}, Timeout: time.Minute}
	}
	needs := program("serve")
	needs.Env = []string{"DOES_NOT_EXIST"}
	r := newRig(t, map[string]servers.Settings{
		"good": program("serve"), "many": program("tools",
			"100"), "web": authorized(web.URL), "unwanted": program("exit"),
		"garbage": program("garbage"), "toomany": program("tools", "500"), "ends": program("exit"),
		"nowhere": {Command: "/no/such/program", Timeout: time.Minute}, "needs": needs,
		"stranger": {URL: web.URL, Timeout: time.Minute}, "mute": mute, "words": {URL: words.URL,
			Timeout: time.Minute},
		"closed": {URL: "http://" + closedPort(t), Timeout: time.Minute}, "moved": authorized(moved.URL),
	})
	got := r.absent(t, "")
	for name, want := range map[string]string{
		"good": "given", "many": "given", "web": "given", "unwanted": "", "garbage": "it doesn't speak MCP",
		"toomany": "it offers 501 tools; the limit is 128",
		"ends":    "it ended at once",
		"nowhere": "it ended at once", "needs": "it needs DOES_NOT_EXIST, which is not set",
		"stranger": "it answers with the error 401",
		"mute":     "no answer within 1s", "words": "it doesn't speak MCP",
		"closed": "it can't be reached", "moved": "it answers with the error 307",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if stolen.Load() {
		t.Error("a redirect was followed with the headers")
	}
}

// A server that does not answer in time is ended, and so is its child process.
func TestAServerThatHangsIsEnded(t *testing.T) {
	child := filepath.Join(t.TempDir(), "child")
	for timeout := 2 * time.Second; ; timeout *= 2 { // on a slow machine the server does not even start in time
		hangs := program("hang", child)
		hangs.Timeout = timeout
		r := newRig(t, map[string]servers.Settings{"hangs": hangs})
		if got, want := r.absent(t, "")["hangs"], fmt.Sprint("no answer within ", timeout); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
		r.Close()
		if _, err := os.Stat(child); err == nil || timeout > 20*time.Second {
			break
		}
	}
	checkEnded(t, child)
}

// checkEnded checks that the process whose ID is in a file has ended.
func checkEnded(t *testing.T, path string) {
	t.Helper()
	pid, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(string(pid)); err != nil || syscall.Kill(n, 0) == nil {
		t.Errorf("what the server %s started still runs: %v", pid, err)
	}
}

// Only the first use of a server waits. A server that came back is given to the turn after the next one.
func TestALaterTurnDoesNotWaitForACheck(t *testing.T) {
	var mu sync.Mutex
	hold, asked := make(chan struct{}), make(chan struct{}, 8)
	web := toolserver.Handler("")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		wait := hold
		mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if bytes.Contains(body, []byte(`"initialize"`)) { // each check begins so; its other requests may come late
			select {
			case asked <- struct{}{}:
			default:
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-wait:
			web.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	defer front.Close()
	r := newRig(t, map[string]servers.Settings{"slow": {URL: front.URL, Timeout: time.Second}})
	if got := r.absent(t, "")["slow"]; got != "no answer within 1s" {
		t.Fatalf("it is %q", got)
	}
	<-asked
	for range 3 {
		r.absent(t, "")
	}
	select {
	case <-asked:
		t.Error("a server that hangs is checked again at once")
	default:
	}
	r.later.Store(int64(time.Hour))
	if got := r.absent(t, "")["slow"]; got != "no answer within 1s" { // the check of this turn still waits
		t.Errorf("it is %q", got)
	}
	mu.Lock()
	close(hold)
	mu.Unlock()
	for r.absent(t, "")["slow"] != "given" {
		if t.Context().Err() != nil {
			t.Fatal("it is never given")
		}
		r.later.Add(int64(time.Hour))
		time.Sleep(10 * time.Millisecond)
	}
}

// In a sandbox a server runs where it can run.
func TestServersInASandbox(t *testing.T) {
	web := httptest.NewServer(toolserver.Handler(""))
	defer web.Close()
	r := newRig(t, map[string]servers.Settings{"inside": program("serve"),
		"far": {URL: "https://mcp.invalid/mcp", Timeout: time.Minute}, "near": {URL: web.URL, Timeout: time.Minute}})
	for in, want := range map[cli.Sandbox]map[string]string{
		"offline": {"inside": "given", "far": "this sandbox has no network", "near": "this sandbox has no network"},
		"box": {"inside": "given", "far": "it can't be reached",
			"near": "it is on the machine itself, which this sandbox can't reach"},
		"gone": {"inside": "this sandbox can't be used", "far": "this sandbox can't be used",
			"near": "this sandbox can't be used"},
	} {
		if got := r.absent(t, in); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
}

// What an agent gets of a server has each value in a variable of ductor's prefix, and none in the arguments or the URL.
func TestAServerForAgents(t *testing.T) {
	const key = "a-very-secret-key"
	t.Setenv("GREETING", key)
	web := httptest.NewServer(toolserver.Handler("Bearer " + key))
	defer web.Close()
	stdio := program("serve")
	stdio.Env = []string{"GREETING", "LEVEL=loud"}
	r := newRig(t, map[string]servers.Settings{"greeter": stdio,
		"web": {URL: web.URL, Headers: []string{"Authorization: Bearer ${GREETING}", "X-Level: loud"},
			Env: []string{"GREETING"}, Timeout: time.Minute}})
	given, absent := r.For(t.Context(), cli.Request{}, func(string) bool { return true })
	if len(given) != 2 || len(absent) != 0 {
		t.Fatalf("given are %v, not %v", given, absent)
	}
	greeter, other := given[0], given[1]
	if fmt.Sprint(greeter.Env) != "map[DUCTOR_MCP_GREETER_GREETING:"+key+" DUCTOR_MCP_GREETER_LEVEL:loud]" ||
		greeter.Trusted || other.Trusted {
		t.Errorf("it is %+v", greeter)
	}
	if want := "map[Authorization:Bearer " + key + " X-Level:loud]"; fmt.Sprint(other.HeadersBy(other.Value)) != want {
		t.Errorf("the headers are %v", other.HeadersBy(other.Value))
	}
	for _, s := range given {
		if strings.Contains(fmt.Sprint(s.Path, s.Args, s.URL, s.Headers), key) {
			t.Errorf("a secret is in clear in %+v", s)
		}
	}
}

// Settings that cannot work or that show a secret are refused.
func TestWrongSettings(t *testing.T) {
	for want, s := range map[string]servers.Settings{
		"either a command or a url": {},
		"either a command":          {Command: "npx", URL: "https://mcp.invalid"},
		"only a server with a url":  {Command: "npx", Headers: []string{"A: b"}},
		"only a command has args":   {URL: "https://mcp.invalid", Args: []string{"x"}},
		"could read the secret":     {URL: "https://mcp.invalid/?api_key=12345678"},
		"machine could read":        {URL: "https://ann:12345678@mcp.invalid/"},
		"only into headers":         {Command: "npx", Args: []string{"${HOME}"}},
		"not a variable's name":     {Command: "npx", Env: []string{"DUCTOR_TELEGRAM_TOKEN"}},
		"is not a variable's":       {Command: "npx", Env: []string{"AWS_*"}},
		"GITHUB_TOKEN looks like":   {Command: "npx", Env: []string{"GITHUB_TOKEN=12345678"}},
		"${OTHER} is not in env":    {URL: "https://mcp.invalid", Headers: []string{"A: ${OTHER}"}},
		"Authorization looks like": {URL: "https://mcp.invalid",
			Headers: []string{"Authorization: Bearer 12345678"}},
		`should be "Name: value"`: {URL: "https://mcp.invalid", Headers: []string{"no header"}},
		"":                        {Command: "npx", Args: []string{"-y", "x"}, Env: []string{"A", "B=c"}},
	} {
		var problems []string
		s.Check(func(key, format string, args ...any) {
			problems = append(problems, key+" "+fmt.Sprintf(format, args...))
		})
		if got := strings.Join(problems, "\n"); !strings.Contains(got, want) ||
			(want == "") != (got == "") || strings.Contains(got, "12345678") {
			t.Errorf("%+v: %q lacks %q", s, got, want)
		}
	}
	for name, ok := range map[string]bool{"github": true, "g2": true, "ductor": false, "mcp": false,
		"none": false, "Git": false, "a_b": false, "a-b": false, "": false, "2g": false} {
		if err := servers.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The program that starts a server passes on none of the agent's own variables, and starts it in no project.
func TestTheEnvironmentOfAServer(t *testing.T) {
	p, err := clitest.Host(t).Start(t.Context(), cli.Command{
		Path: self(t), Args: []string{relay.ServerVerb, "greeter", "sh", "-c", "pwd; env | sort"}, Dir: t.TempDir(),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/home/ann", "OPENAI_API_KEY=x",
			"DUCTOR_MCP_TOKEN=x", "NODE_OPTIONS=--require=x",
			"DUCTOR_MCP_OTHER_A=x", "DUCTOR_MCP_GREETER_GREETING=tea", "https_proxy=http://proxy",
			"DUCTOR_MCP_GREETER_HOME=/own", "LC_ALL=C"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(context.WithoutCancel(t.Context()), 0)
	out := make([]byte, 4096)
	n := 0
	for {
		m, err := p.Stdout().Read(out[n:])
		if n += m; err != nil {
			break
		}
	}
	text := string(out[:n])
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "/", "PATH", "LC_ALL", "PWD", "SHLVL", "_", "OLDPWD":
		case "HOME", "GREETING", "https_proxy":
			if line == "HOME=/home/ann" {
				t.Error("its own HOME does not count")
			}
		default:
			t.Errorf("it has %s", line)
		}
	}
	if !strings.HasPrefix(text, "/\n") || !strings.Contains(text, "GREETING=tea") ||
		!strings.Contains(text, "HOME=/own") {
		t.Errorf("it prints\n%s", text)
	}
}

// Texts of each problem exist in every language.
func TestProblemsInEachLanguage(t *testing.T) {
	r := newRig(t, map[string]servers.Settings{"needs": {Command: "x", Env: []string{"DOES_NOT_EXIST"},
		Timeout: time.Second}})
	for _, l := range lang.Languages() {
		_, absent := r.For(t.Context(), cli.Request{Lang: l}, func(string) bool { return true })
		if !strings.Contains(absent[0].Why, "DOES_NOT_EXIST") {
			t.Errorf("%s: %+v", l, absent)
		}
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
