package app

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

// An agent that cannot be added is a warning in the log.
func TestAnAgentThatCannotBeAdded(t *testing.T) {
	var log bytes.Buffer
	a := &App{}
	a.Log = slog.New(slog.NewTextHandler(&log, nil))
	a.cfg.File = filepath.Join(t.TempDir(), "config.toml")
	if err := a.addAgent(t.Context(), "nobody"); err == nil || strings.Count(log.String(), "level=") != 1 ||
		!strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%v, and the log has %q", err, log.String())
	}
}
