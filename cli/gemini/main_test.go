package gemini

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
	sim "ductor/internal/sim/agent"
	"ductor/internal/sim/modelapi"
)

// The test binary is also the scripted agent of these sessions.
func TestMain(m *testing.M) { clitest.AgentMain(m) }

// scripted returns a provider over the scripted agent, with a home and a working directory of its own.
func scripted(t *testing.T, change func(*Options)) (p *Provider, dir string) {
	t.Helper()
	o := Options{
		ProviderOptions: clitest.Scripted(t, func(p sim.Programs) string { return p.Gemini }, "GEMINI_API_KEY=simulated"),
		StateDir:        stateDir(t),
	}
	if change != nil {
		change(&o)
	}
	return New(o), t.TempDir()
}

// stateDir returns the directory for a test's policies.
func stateDir(t *testing.T) string {
	t.Helper()
	return t.TempDir() + "/gemini"
}

// real returns a provider over the real Gemini with a simulated model.
func real(t *testing.T, change func(*Options)) (*Provider, realagent.CLI, *modelapi.Server) {
	t.Helper()
	api := realagent.Model(t, "")
	c := realagent.Gemini(t, api.URL())
	o := Options{ProviderOptions: cli.ProviderOptions{Launcher: clitest.Host(t), Path: c.Path, Env: c.Environ}, StateDir: stateDir(t)}
	if change != nil {
		change(&o)
	}
	return New(o), c, api
}

// over returns a provider over another launcher.
func over(p cli.Provider, l cli.Launcher) cli.Provider {
	o := p.(*Provider).opts
	o.Launcher = l
	return New(o)
}
