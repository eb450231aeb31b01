package acp

import (
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	sim "ductor/internal/sim/agent"
)

// The test binary is also the scripted agent of these sessions.
func TestMain(m *testing.M) { clitest.AgentMain(m) }

const testAgent cli.Agent = "scripted"

// scripted returns a provider over the scripted agent, with a home and a working directory of its own.
func scripted(t *testing.T, change func(*Options)) (p *Provider, dir string) {
	t.Helper()
	o := Options{
		ProviderOptions: clitest.Scripted(t, func(p sim.Programs) string { return p.Gemini }, "GEMINI_API_KEY=simulated").Allowing("GEMINI_API_KEY"),
		Agent:           testAgent, Args: []string{"--acp"}, Programs: map[string]Quirks{"gemini-cli": {LateHistory: true, CommandMarks: "/"}},
	}
	if change != nil {
		change(&o)
	}
	return New(o), t.TempDir()
}

// over returns a provider over another launcher.
func over(p cli.Provider, l cli.Launcher) cli.Provider {
	o := p.(*Provider).opts
	o.Launcher = l
	return New(o)
}

// open opens a session and closes it when the test ends.
func open(t *testing.T, p *Provider, req cli.Request) live {
	t.Helper()
	return clitest.Open(t, p, cli.Live, req).(live)
}
