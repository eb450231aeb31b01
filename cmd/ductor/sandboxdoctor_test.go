package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/internal/app/environment"
	"ductor/internal/config"
)

// What keeps a sandbox from being had is said with what helps; no other check suffers.
func TestTheDoctorOnSandboxesThatCannotBeHad(t *testing.T) {
	town := surroundings(t, nil)
	for name, c := range map[string]struct {
		set  func(*config.SandboxSetting)
		want string
	}{
		"no engine":      {func(s *config.SandboxSetting) { s.Host = "unix:///no/such/socket" }, "unix:///no/such/socket cannot be reached"},
		"no certificate": {func(s *config.SandboxSetting) { s.Host, s.CA = "tcp://127.0.0.1:1", "/no/such/ca.pem" }, "/no/such/ca.pem"},
		"a seed is missing": {func(s *config.SandboxSetting) {
			s.Host, s.Seeds = "unix:///no/such/socket", []string{"/no/such/seed:x"}
		}, "sandbox.seeds: /no/such/seed"},
		"a socket by link": {func(s *config.SandboxSetting) { s.Mounts = []string{linkedSocket(t)} }, "who may use it owns the machine"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := town.cfg
			cfg.Sandbox.Mode = config.SandboxDocker
			c.set(&cfg.Sandbox.SandboxSetting)
			d := &doctor{}
			d.sandboxes(t.Context(), cfg)
			var out bytes.Buffer
			if err := d.found.writeText(&out); err != nil {
				t.Fatal(err)
			}
			if d.found.failed() == 0 || !strings.Contains(out.String(), "FAIL sandbox default: ") || !strings.Contains(out.String(), c.want) {
				t.Errorf("%d failed: %s", d.found.failed(), out.String())
			}
		})
	}
}

// linkedSocket is a link to a socket of Docker's, as far as its name tells.
func linkedSocket(t testing.TB) string {
	t.Helper()
	d := newDoor(t, "")
	real := filepath.Join(filepath.Dir(d.path), "docker.sock")
	d.path = real
	d.unlock()
	link := filepath.Join(t.TempDir(), "harmless")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// A command looks into sandboxes that are in use, or were. It says nothing of an engine that nobody asked for.
func TestCommandsAskForNoSandboxThatIsNotUsed(t *testing.T) {
	for mode, said := range map[string]bool{config.SandboxOff: false, config.SandboxDocker: true} {
		c := config.Default()
		c.Storage.Dir = t.TempDir()
		c.Sandbox.Host, c.Sandbox.Mode = "unix://"+filepath.Join(t.TempDir(), "no.sock"), mode
		p := config.SandboxProject{Dir: t.TempDir(), SandboxSetting: c.Sandbox.SandboxSetting}
		p.Host, p.Mode = "unix://"+filepath.Join(t.TempDir(), "other.sock"), config.SandboxDocker
		c.Sandbox.Projects = map[string]config.SandboxProject{"web": p}
		s, err := environment.OpenSandboxes(c, testLog(t))
		if err != nil {
			t.Fatal(err)
		}
		var notes strings.Builder
		if places := s.Running(t.Context(), &notes); len(places) != 0 {
			t.Errorf("%d sandboxes run", len(places))
		}
		if got := notes.String(); !strings.Contains(got, "sandbox web cannot be looked at") || strings.Contains(got, "sandbox default") != said {
			t.Errorf("with sandbox.mode %s it says %s", mode, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
