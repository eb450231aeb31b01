package claude

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

// scripted makes a provider over the scripted agent, with a home and a working directory of its own.
func scripted(t *testing.T, change func(*Options)) (p *Provider, dir string) {
	t.Helper()
	programs, err := sim.InstallFrom(clitest.Program(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "HOME=") || strings.HasPrefix(e, "ANTHROPIC_") || strings.HasPrefix(e, "CLAUDE")
	}), "HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
	o := Options{
		ProviderOptions: cli.ProviderOptions{
			// the scripted agent is this test binary, and would linger a second
			Launcher: clitest.Host(t), Path: programs.Claude, Env: func() []string { return env }, AllowEnv: []string{"GORACE"},
		},
	}
	if change != nil {
		change(&o)
	}
	return New(o), t.TempDir()
}

func plainJSON(o *Options) { o.PlainJSON = true }

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

// ask runs one turn and returns its events, the Result being the last.
func ask(ctx context.Context, s cli.Session, req cli.Request) (cli.Result, []cli.Event) {
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

// contextWithAbort is a context that the end of the test cancels at the latest.
func contextWithAbort(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}
