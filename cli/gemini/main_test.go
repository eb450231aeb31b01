package gemini

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
	sim "ductor/internal/sim/agent"
	"ductor/internal/sim/modelapi"
)

// The test binary is also the scripted agent that the sessions below talk with.
func TestMain(m *testing.M) {
	sim.RunIfChild()
	clitest.Main(m)
}

// scripted makes a provider over the scripted agent, with a home and a working directory of its own.
func scripted(t *testing.T, change func(*Options)) (p *Provider, dir string) {
	t.Helper()
	programs, err := sim.InstallFrom(clitest.Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "HOME=") || strings.HasPrefix(e, "GEMINI_") || strings.HasPrefix(e, "GOOGLE_")
	}), "HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0", "GEMINI_API_KEY=simulated")
	o := Options{
		ProviderOptions: cli.ProviderOptions{
			// the scripted agent is this test binary, and would linger a second
			Launcher: clitest.Host(t), Path: programs.Gemini, Env: func() []string { return env }, AllowEnv: []string{"GORACE"},
		},
		StateDir: stateDir(t),
	}
	if change != nil {
		change(&o)
	}
	return New(o), t.TempDir()
}

// stateDir is a place for settings that nobody else can write to.
func stateDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/gemini"
	if err := private(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// real makes a provider over the real Gemini, whose model is simulated.
func real(t *testing.T, change func(*Options)) (*Provider, realagent.CLI, *modelapi.Server) {
	t.Helper()
	api := modelapi.New(modelapi.Options{})
	if err := api.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := api.Close(ctx); err != nil {
			t.Errorf("close the model's API: %v", err)
		}
	})
	c := realagent.Gemini(t, api.URL())
	o := Options{ProviderOptions: cli.ProviderOptions{Launcher: clitest.Host(t), Path: c.Path, Env: c.Environ}, StateDir: stateDir(t)}
	if change != nil {
		change(&o)
	}
	return New(o), c, api
}

// over puts a provider over another launcher.
func over(p cli.Provider, l cli.Launcher) cli.Provider {
	o := p.(*Provider).opts
	o.Launcher = l
	return New(o)
}

// open opens a session and closes it when the test ends.
func open(t *testing.T, p *Provider, mode cli.Mode, req cli.Request) cli.Session {
	t.Helper()
	s, err := p.Open(t.Context(), mode, req)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// say runs one turn and returns its events, the Result being the last.
func say(ctx context.Context, s cli.Session, req cli.Request) (cli.Result, []cli.Event) {
	var events []cli.Event
	s.Turn(ctx, req, func(ev cli.Event) { events = append(events, ev) })
	r, _ := events[len(events)-1].(cli.Result)
	return r, events
}
