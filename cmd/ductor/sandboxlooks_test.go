package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// Commands cover sandboxes that are or were in use, and do not mention an unused engine.
func TestCommandsAskForNoSandboxThatIsNotUsed(t *testing.T) {
	for mode, said := range map[string]bool{orchestrator.SandboxOff: false, orchestrator.SandboxDocker: true} {
		c := config.Default()
		c.Storage.Dir = t.TempDir()
		c.Sandbox.Host, c.Sandbox.Mode = "unix://"+filepath.Join(t.TempDir(), "no.sock"), mode
		p := config.SandboxProject{Dir: t.TempDir(), Settings: c.Sandbox.Settings}
		p.Host, p.Mode = "unix://"+filepath.Join(t.TempDir(), "other.sock"), orchestrator.SandboxDocker
		c.Sandbox.Projects = map[string]config.SandboxProject{"web": p}
		s, err := environment.OpenSandboxes(c, environment.NewPolicy(c), testLog(t))
		if err != nil {
			t.Fatal(err)
		}
		var notes strings.Builder
		if places := s.Running(t.Context(), &notes); len(places) != 0 {
			t.Errorf("%d sandboxes run", len(places))
		}
		if got := notes.String(); !strings.Contains(got, "sandbox web cannot be reached") ||
			strings.Contains(got, "sandbox default") != said {
			t.Errorf("with sandbox.mode %s it says %s", mode, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
