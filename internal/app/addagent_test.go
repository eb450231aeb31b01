package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/orchestrator"
)

// An agent that cannot be added is a warning in the log.
func TestAnAgentThatCannotBeAdded(t *testing.T) {
	var log bytes.Buffer
	a := &App{}
	a.Log = slog.New(slog.NewTextHandler(&log, nil))
	a.cfg.File = filepath.Join(t.TempDir(), "config.toml")
	err := a.addAgent(t.Context(), orchestrator.Press{}, "nobody")
	if err == nil || strings.Count(log.String(), "level=") != 1 || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%v, and the log has %q", err, log.String())
	}
}

// The programs of the catalogue are looked up once, and again after a reload and after some minutes.
func TestProgramsAreLookedUpOnce(t *testing.T) {
	r, bin := newReloadRig(t), t.TempDir()
	t.Setenv("PATH", bin)
	install := func(program string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, program), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...string) {
		t.Helper()
		var ids []string
		for _, agent := range r.nextAgents() {
			ids = append(ids, agent.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("it offers %q, want %q", ids, want)
		}
	}
	install("opencode")
	check("opencode")
	install("goose")
	check()
	if _, err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("goose")
	install("kilo")
	check()
	r.machine.at = r.machine.at.Add(-2 * addableFor)
	check("kilo")
}
