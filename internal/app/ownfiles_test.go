package app

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ductor/internal/config"
)

func TestOwnFilesAreNamedWithLinksResolved(t *testing.T) {
	home, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	if err := os.Symlink(elsewhere, filepath.Join(home, ".config")); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.File = filepath.Join(home, "conf", "config.toml")
	cfg.Projects.Roots = []string{filepath.Join(home, "src")}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := ownFiles(cfg)
	for _, want := range []string{
		cfg.File, filepath.Dir(cfg.File), cfg.Storage.Dir, filepath.Join(home, ".config/ductor"),
		filepath.Join(elsewhere, "ductor"), filepath.Join(elsewhere, "systemd"), program,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
}

// TestADirectoryWithARootIsNotDuctorsOwn tests a configuration inside a project: only the file itself is protected.
func TestADirectoryWithARootIsNotDuctorsOwn(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	cfg := config.Default()
	cfg.File = filepath.Join(home, "config.toml")
	cfg.Projects.Roots = []string{filepath.Join(home, "src")}
	if got := ownFiles(cfg); slices.Contains(got, home) || !slices.Contains(got, cfg.File) {
		t.Errorf("got %q", got)
	}
}
