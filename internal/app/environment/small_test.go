package environment

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/docker"
	"ductor/internal/config"
	"ductor/internal/runner"
)

// TestAMadeProgramReplacesTheOneBefore tests that the fixed name leads to the latest program, and that nothing else
// remains.
func TestAMadeProgramReplacesTheOneBefore(t *testing.T) {
	dir, wrote := filepath.Join(t.TempDir(), "program"), 0
	of := func(file string) *maker {
		return &maker{dir: dir, file: file, write: func(_ context.Context, path string) error {
			wrote++
			return os.WriteFile(path, []byte(file), 0o700)
		}}
	}
	for i, c := range []struct {
		file  string
		wrote int
	}{{"ductor-runner-1", 1}, {"ductor-runner-1", 1}, {"ductor-runner-2", 2}, {"ductor-runner-1", 3}} {
		m := of(c.file)
		if err := m.make(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(m.path())
		if err != nil || string(got) != c.file || wrote != c.wrote {
			t.Errorf("%d: %q, written %d times: %v", i, got, wrote, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 2 {
			t.Errorf("%d: %v is left: %v", i, left, err)
		}
	}
	broken := of("ductor-runner-3")
	broken.write = func(context.Context, string) error { return os.ErrPermission }
	if err := broken.make(t.Context()); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a program that cannot be written: %v", err)
	}
	if got, err := os.ReadFile(broken.path()); err != nil || string(got) != "ductor-runner-1" {
		t.Errorf("then there is %q: %v", got, err)
	}
}

func TestTheRunnerIsBuiltOfTheSource(t *testing.T) {
	source, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), smallName)
	if err := (builder{source: source, projects: []string{t.TempDir()}}).build(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := runner.CheckVersion(t.Context(), path); err != nil {
		t.Error(err)
	}
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("it needs %q: %v", libraries, err)
	}
}

// TestARunnerThatIsNotBuilt tests that errors of a build name the command to run.
func TestARunnerThatIsNotBuilt(t *testing.T) {
	source, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(source, link); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, c := range []struct {
		name string
		b    builder
		says string
	}{
		{"no source", builder{}, "is missing"},
		{"below a project", builder{source: source, projects: []string{filepath.Dir(source)}},
			"where agents may write"},
		{"below a project, by a link", builder{source: link, projects: []string{source}}, "where agents may write"},
		{"no module", builder{source: empty}, "go build ./cmd/ductor-runner fails: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), smallName)
			err := c.b.build(t.Context(), path)
			var own *docker.Error
			if !errors.As(err, &own) || !strings.Contains(own.Reason, c.says) ||
				!strings.Contains(own.Fix, "CGO_ENABLED=0 go build -o /") {
				t.Errorf("%v", err)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is there: %v", err)
			}
		})
	}
}

// TestAnInstalledRunnerIsUsed tests that an installed ductor-runner of the same version is preferred to building one.
func TestAnInstalledRunnerIsUsed(t *testing.T) {
	cfg := config.Default()
	cfg.Storage.Dir = t.TempDir()
	installed := filepath.Join(t.TempDir(), smallName)
	t.Setenv("PATH", filepath.Dir(installed)+":"+os.Getenv("PATH"))
	own := filepath.Join(cfg.Storage.Dir, programDir, smallName)
	for script, want := range map[string]string{"exit 1": installed, "echo 999": own} {
		if err := os.WriteFile(installed, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if got := findSmall(cfg); got.path != want || (got.make != nil) != (want == own) {
			t.Errorf("with %q it is %s", script, got.path)
		}
	}
}
