package claude

import (
	"context"
	"testing"

	"ductor/cli/clitest"
	sim "ductor/internal/sim/agent"
)

// The test binary is also the scripted agent of these sessions.
func TestMain(m *testing.M) { clitest.AgentMain(m) }

// scripted returns a provider over the scripted agent, with a home and a working directory of its own.
func scripted(t *testing.T, change func(*Options)) (p *Provider, dir string) {
	t.Helper()
	o := Options{ProviderOptions: clitest.Scripted(t, func(p sim.Programs) string { return p.Claude })}
	if change != nil {
		change(&o)
	}
	return New(o), t.TempDir()
}

// contextWithAbort returns a context that ends with the test at the latest.
func contextWithAbort(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
