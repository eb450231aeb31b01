package clitest

import (
	"context"
	"os"
	"testing"
	"time"

	"ductor/cli"
	sim "ductor/internal/sim/agent"
)

// closePatience limits the close of a session.
const closePatience = 20 * time.Second

// AgentMain is Main for a package whose test binary is also the scripted agent that its sessions talk with.
func AgentMain(m *testing.M) {
	sim.RunIfChild()
	Main(m)
}

// Scripted returns the options of a provider over a scripted agent with its own home. program selects the agent. env
// is added to ductor's environment; the dialect's Options select the part that the agent sees.
func Scripted(t testing.TB, program func(sim.Programs) string, env ...string) cli.ProviderOptions {
	t.Helper()
	programs, err := sim.InstallFrom(Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
	return cli.ProviderOptions{
		Launcher: Host(t), Path: program(programs), Env: func() []string { return env },
		AllowEnv: []string{"GORACE"}, // the scripted agent may be this test binary, and would linger a second
	}
}

// Open opens a session and closes it when the test ends.
func Open(t testing.TB, p cli.Provider, mode cli.Mode, req cli.Request) cli.Session {
	t.Helper()
	s, err := p.Open(t.Context(), mode, req)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { Close(t, s) })
	return s
}

// Close closes a session in time.
func Close(t testing.TB, s cli.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// Play runs one turn and returns its events, the Result being the last.
func Play(ctx context.Context, s cli.Session, req cli.Request) (cli.Result, []cli.Event) {
	var events []cli.Event
	s.Turn(ctx, req, func(ev cli.Event) { events = append(events, ev) })
	r, _ := events[len(events)-1].(cli.Result)
	return r, events
}

// Of returns the events of one type.
func Of[T cli.Event](events []cli.Event) (some []T) {
	for _, ev := range events {
		if ev, ok := ev.(T); ok {
			some = append(some, ev)
		}
	}
	return some
}
