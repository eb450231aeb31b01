package copilot

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
	sim "ductor/internal/sim/agent"
	"ductor/internal/sim/modelapi"
)

// The test binary is also the scripted agent of these sessions, and its runner.
func TestMain(m *testing.M) { clitest.AgentMain(m) }

// scripted returns a provider over the scripted agent, with a home and a working directory of its own.
func scripted(t *testing.T) (*Provider, string) {
	t.Helper()
	return New(Options{
		ProviderOptions: clitest.Scripted(t, func(p sim.Programs) string { return p.Copilot }, "GH_TOKEN=dummy"),
	}), t.TempDir()
}

// each runs f with the scripted Copilot and with the real one, which must behave alike. The real one takes seconds of
// CPU time to start.
func each(t *testing.T, f func(t *testing.T, p *Provider, dir string)) {
	t.Run("scripted", func(t *testing.T) {
		p, dir := scripted(t)
		f(t, p, dir)
	})
	t.Run("real", func(t *testing.T) {
		realagent.LongOnly(t)
		p, dir, _ := real(t)
		f(t, p, dir)
	})
}

// real returns a provider over the installed Copilot with a simulated model.
func real(t testing.TB) (*Provider, string, *modelapi.Server) {
	t.Helper()
	api := realagent.Model(t, realagent.Key)
	c := realagent.Copilot(t, api.URL())
	return New(Options{ProviderOptions: cli.ProviderOptions{Launcher: clitest.Host(t), Path: c.Path, Env: c.Environ}}), c.Work, api
}
