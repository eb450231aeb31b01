package clitest

import (
	"context"
	"os"
	"testing"
	"time"

	"ductor/cli"
	sim "ductor/internal/sim/agent"
)

// closePatience limits how long Close may take.
const closePatience = time.Minute

// AgentMain is like Main. It is for packages whose test binary also serves as the scripted agent.
func AgentMain(m *testing.M) {
	sim.RunIfChild()
	Main(m)
}

// Scripted returns the options of a provider that runs a scripted agent with its own home. program selects the agent.
// env is added to ductor's environment. The agent sees only the variables that the options allow.
func Scripted(t testing.TB, program func(sim.Programs) string, env ...string) cli.ProviderOptions {
	t.Helper()
	programs, err := sim.InstallFrom(Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
	return cli.ProviderOptions{
		Launcher: Host(t), Path: program(programs), Env: func() []string { return env },
		// The agent is this test binary. Without GORACE, a binary with the race detector exits a second late.
		AllowEnv: []string{"GORACE"},
	}
}

// Open opens a session. It closes the session at the end of the test.
func Open(t testing.TB, p cli.Provider, mode cli.Mode, req cli.Request) cli.Session {
	t.Helper()
	s, err := p.Open(t.Context(), mode, req)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { Close(t, s) })
	return s
}

// Close closes a session, and fails the test if that takes too long.
func Close(t testing.TB, s cli.Session) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// Play runs one turn. It returns the turn's Result and all its events. The last event is the Result.
func Play(ctx context.Context, s cli.Session, req cli.Request) (cli.Result, []cli.Event) {
	var events []cli.Event
	s.Turn(ctx, req, func(ev cli.Event) { events = append(events, ev) })
	r, _ := events[len(events)-1].(cli.Result)
	return r, events
}

// Of returns the events of type T.
func Of[T cli.Event](events []cli.Event) (some []T) {
	for _, ev := range events {
		if ev, ok := ev.(T); ok {
			some = append(some, ev)
		}
	}
	return some
}
