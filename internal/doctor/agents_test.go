package doctor

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/config"
)

// waiter is an agent whose Auth returns only after Auth of all waiters was called.
type waiter struct {
	cli.Provider // nil: the test calls no other method
	name         cli.Agent
	asked        *sync.WaitGroup
}

func (w waiter) Agent() cli.Agent  { return w.name }
func (w waiter) Modes() []cli.Mode { return []cli.Mode{cli.Live} }

func (w waiter) Auth(ctx context.Context) cli.Auth {
	w.asked.Done()
	all := make(chan struct{})
	go func() { w.asked.Wait(); close(all) }()
	select {
	case <-all:
		return cli.Auth{State: cli.Authenticated, Path: "/bin/" + string(w.name), Version: "1", Method: "a key"}
	case <-ctx.Done():
		return cli.Auth{State: cli.NotFound}
	}
}

// The doctor checks all agents concurrently and reports them in order.
func TestTheDoctorAsksAllAgentsAtOnce(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var asked sync.WaitGroup
	var providers []cli.Provider
	var want strings.Builder
	for _, name := range []cli.Agent{"one", "two", "three"} {
		asked.Add(1)
		providers = append(providers, waiter{name: name, asked: &asked})
		want.WriteString("ok   agent " + string(name) + ": /bin/" + string(name) + " 1, logged in by a key, live\n")
	}
	var d doctor
	n := d.checkAgents(ctx, config.Default(), providers, "")
	var out bytes.Buffer
	if err := d.found.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if n != 3 || out.String() != want.String() {
		t.Errorf("%d can be used:\n%s\nwant\n%s", n, out.String(), want.String())
	}
}

// absent is an agent that is not installed.
type absent struct {
	cli.Provider
	name cli.Agent
}

func (a absent) Agent() cli.Agent  { return a.name }
func (a absent) Modes() []cli.Mode { return []cli.Mode{cli.Live} }
func (a absent) Auth(context.Context) cli.Auth {
	return cli.Auth{State: cli.NotFound, Fix: "Install it"}
}

// Agents that are not installed are worth a warning only if the configuration names them.
func TestAgentsThatNobodyAskedForAreNoWarning(t *testing.T) {
	cfg := config.Default()
	cfg.Agents.Default, cfg.Agents.Gemini.Path = "claude", "/opt/gemini"
	var providers []cli.Provider
	for _, name := range []cli.Agent{"claude", "codex", "gemini", "copilot", "goose"} {
		providers = append(providers, absent{name: name})
	}
	var d doctor
	if n := d.checkAgents(t.Context(), cfg, providers, ""); n != 0 {
		t.Errorf("%d can be used", n)
	}
	for _, name := range []string{"claude", "gemini", "goose"} {
		if !d.found.contains("agent "+name, Warning, "docs/agents.md") {
			t.Errorf("no warning of %s:\n%s", name, d.found)
		}
	}
	if len(d.found) != 4 || !d.found.contains("agents", OK, "not installed: Codex, Copilot; docs/agents.md") {
		t.Errorf("the others:\n%s", d.found)
	}
}
