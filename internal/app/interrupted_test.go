package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"ductor/bot/tgapi"
	"ductor/cli/clitest"
	"ductor/internal/config"
	"ductor/internal/secrets"
	"ductor/internal/sim/telegram"
)

// lockedBuffer is a buffer that goroutines share.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// If ductor ends while it checks an agent, for example because its token is wrong, it does not log that the agent is
// broken.
func TestAnInterruptedCheckOfAnAgentIsNotAFailure(t *testing.T) {
	for name, end := range map[string]func(*App){"close": (*App).Close, "leave": (*App).Leave} {
		t.Run(name, func(t *testing.T) {
			srv := telegram.New(telegram.Options{})
			if err := srv.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = srv.Close() })
			dir := t.TempDir()
			t.Setenv("HOME", dir)
			started, program := filepath.Join(dir, "started"), filepath.Join(dir, "claude")
			script := fmt.Sprintf("#!/bin/sh\n: > '%s'\nexec sleep 600\n", started)
			err := errors.Join(unix.Mkfifo(started, 0o600), os.WriteFile(program, []byte(script), 0o700))
			if err != nil {
				t.Fatal(err)
			}
			cfg := config.Default()
			cfg.Telegram.Token, cfg.Telegram.APIBase = secrets.Value(reloadToken), srv.URL()
			cfg.Telegram.AllowedUsers = []int64{1}
			cfg.Storage.Dir = filepath.Join(dir, "state")
			cfg.Projects.DefaultDir, cfg.Projects.Roots = dir, []string{dir}
			cfg.Agents.Claude.Path = program
			var log lockedBuffer
			a, err := Build(t.Context(), cfg, Options{Log: slog.New(slog.NewTextHandler(&log, nil)),
				Scrub: tgapi.NewScrubber(reloadToken), Runner: clitest.Runner(t)})
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Run(t.Context()); !errors.Is(err, ErrToken) {
				t.Errorf("with a wrong token it ends with %v", err)
			}
			if _, err := os.ReadFile(started); err != nil { // it waits until the agent opens it
				t.Error(err)
			}
			end(a)
			for _, said := range []string{"msg=agent ", "does not report its version", "detached"} {
				if strings.Contains(log.String(), said) {
					t.Errorf("the log says %q:\n%s", said, log.String())
				}
			}
		})
	}
}
