package acp

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	sim "ductor/internal/sim/agent"
)

// The test binary is also the scripted agent that the sessions below talk with.
func TestMain(m *testing.M) {
	sim.RunIfChild()
	clitest.Main(m)
}

const testAgent cli.Agent = "scripted"

// scripted makes a provider over the scripted agent, with a home and a working directory of its own.
func scripted(t *testing.T, change func(*Options)) (p *Provider, dir string) {
	t.Helper()
	programs, err := sim.InstallFrom(clitest.Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "HOME=") }),
		"HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0", "GEMINI_API_KEY=simulated")
	o := Options{
		ProviderOptions: cli.ProviderOptions{
			// the scripted agent is this test binary, and would linger a second
			Path: programs.Gemini, Launcher: clitest.Host(t), Env: func() []string { return env }, AllowEnv: []string{"GORACE", "GEMINI_API_KEY"},
		},
		Agent: testAgent, Args: []string{"--acp"}, Quirks: Quirks{LateHistory: true, CommandMarks: "/"},
	}
	if change != nil {
		change(&o)
	}
	return New(o), t.TempDir()
}

// over puts a provider over another launcher.
func over(p cli.Provider, l cli.Launcher) cli.Provider {
	o := p.(*Provider).opts
	o.Launcher = l
	return New(o)
}

// open opens a session and closes it when the test ends.
func open(t *testing.T, p *Provider, req cli.Request) *session {
	t.Helper()
	s, err := p.Open(t.Context(), cli.Live, req)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { closeNow(t, s) })
	return s.(*session)
}

func closeNow(t *testing.T, s cli.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// say runs one turn and returns its events, the Result being the last.
func say(ctx context.Context, s cli.Session, req cli.Request) (cli.Result, []cli.Event) {
	var events []cli.Event
	s.Turn(ctx, req, func(ev cli.Event) { events = append(events, ev) })
	r, _ := events[len(events)-1].(cli.Result)
	return r, events
}
