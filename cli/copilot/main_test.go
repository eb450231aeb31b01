package copilot

import (
	"context"
	"os"
	"testing"
	"time"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
	sim "ductor/internal/sim/agent"
	"ductor/internal/sim/modelapi"
)

// The test binary is also the scripted agent that the sessions below talk with, and its supervisor.
func TestMain(m *testing.M) {
	sim.RunIfChild()
	clitest.Main(m)
}

// scripted makes a provider over the scripted agent, with a home and a working directory of its own.
func scripted(t *testing.T) (*Provider, string) {
	t.Helper()
	programs, err := sim.InstallFrom(clitest.Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GH_TOKEN=dummy", "GORACE=atexit_sleep_ms=0"}
	return New(Options{
		ProviderOptions: cli.ProviderOptions{
			// the scripted agent is this test binary, and would linger a second
			Launcher: clitest.Host(t), Path: programs.Copilot, Env: func() []string { return env }, AllowEnv: []string{"GORACE"},
		},
	}), t.TempDir()
}

// each runs f with the scripted Copilot and with the real one, which must do the same.
func each(t *testing.T, f func(t *testing.T, p *Provider, dir string)) {
	t.Run("scripted", func(t *testing.T) {
		p, dir := scripted(t)
		f(t, p, dir)
	})
	t.Run("real", func(t *testing.T) {
		p, dir, _ := real(t)
		f(t, p, dir)
	})
}

// real makes a provider over the installed Copilot, whose model is simulated.
func real(t testing.TB) (*Provider, string, *modelapi.Server) {
	t.Helper()
	api := modelapi.New(modelapi.Options{Key: realagent.Key})
	if err := api.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := api.Close(ctx); err != nil {
			t.Errorf("close the API: %v", err)
		}
	})
	c := realagent.Copilot(t, api.URL())
	return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: clitest.Host(t), Path: c.Path, Env: c.Environ}}), c.Work, api
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

// play runs one turn and returns its events, the Result being the last.
func play(ctx context.Context, s cli.Session, req cli.Request) (cli.Result, []cli.Event) {
	var events []cli.Event
	s.Turn(ctx, req, func(ev cli.Event) { events = append(events, ev) })
	r, _ := events[len(events)-1].(cli.Result)
	return r, events
}

// of picks the events of one type.
func of[T cli.Event](events []cli.Event) (some []T) {
	for _, ev := range events {
		if ev, ok := ev.(T); ok {
			some = append(some, ev)
		}
	}
	return some
}
