package environment

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/docker"
	"ductor/docker/dockertest"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// TestAnotherWayToAnEngineIsNoFormerEngine tests that nothing is removed from a former engine that is still in use
// under another address.
func TestAnotherWayToAnEngineIsNoFormerEngine(t *testing.T) {
	dockertest.Need(t)
	dir, err := os.MkdirTemp("", "way-") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	way := docker.EngineOptions{Host: "unix://" + filepath.Join(dir, "sock")}
	if err := os.Symlink(strings.TrimPrefix(dockertest.Host(), "unix://"), filepath.Join(dir, "sock")); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Storage.Dir, cfg.Projects.Roots = t.TempDir(), []string{t.TempDir()}
	set := &cfg.Sandbox.Settings
	set.Mode, set.Host, set.BuildDir, set.BuildNetwork, set.Network = orchestrator.SandboxDocker, dockertest.Host(), dockertest.ImageDir(t), "none", "none"
	set.Runner = dockertest.Tool(t, dockertest.Runner)
	s, err := OpenSandboxes(cfg, NewPolicy(cfg), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b := s.configured[0]
	defer func() {
		_, err := b.Engine.Clean(context.Background(), Owner(cfg), nil)
		if err = errors.Join(err, b.Engine.Forget(context.Background(), Owner(cfg), b.Name), s.Close()); err != nil {
			t.Error(err)
		}
	}()
	if err := b.Launcher.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	isRunning := func(when string) {
		t.Helper()
		if status, err := b.Launcher.Status(t.Context()); err != nil || status.Is != docker.StateRunning {
			t.Fatalf("%s the container is %s, %v", when, status.Is, err)
		}
	}
	isRunning("before")
	if err := s.leaveEngine(t.Context(), way, s.engineIDs(t.Context())); err != nil {
		t.Error(err)
	}
	isRunning("afterwards")
	if err := s.leaveEngine(t.Context(), way, nil); err == nil {
		t.Error("it was emptied although it was not known whether it is in use")
	}
	isRunning("after a refusal")
}
