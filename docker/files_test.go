package docker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/docker/dockertest"
	"ductor/internal/rooted"
)

// Files of a project can be read, listed and written as the agents in its container see them.
func TestFilesOfAContainer(t *testing.T) {
	t.Parallel()
	o := testOptions(t, needEngine(t))
	dir := o.Projects[0]
	over := t.TempDir() // hides a directory of the project
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "out"), 0o777), os.Chmod(dir, 0o777),
		os.Symlink("/etc/passwd", filepath.Join(dir, "link")), os.Chmod(over, 0o755)); err != nil {
		t.Fatal(err)
	}
	dockertest.Write(t, filepath.Join(dir, "out", "a.txt"), "of this machine", 0o644)
	dockertest.Write(t, filepath.Join(over, "a.txt"), "of the container\r\n", 0o644)
	dockertest.Write(t, filepath.Join(dir, "private"), "x", 0o000)
	o.Mounts = []Mount{{Source: over, Target: filepath.Join(dir, "out")}}
	o.User = "1234:1234"
	s := newSandbox(t, o)
	if got, err := s.ReadFile(t.Context(), dir, "out/a.txt", 100); err != nil || string(got) != "of the container\r\n" {
		t.Errorf("it reads %q, %v", got, err)
	}
	large := strings.Repeat("0123456789\r\n", 1<<16)
	dockertest.Write(t, filepath.Join(over, "large"), large, 0o644)
	if got, err := s.ReadFile(t.Context(), dir, "out/large", 1<<20); err != nil || string(got) != large {
		t.Errorf("of %d bytes it reads %d, %v", len(large), len(got), err)
	}
	for below, want := range map[string]rooted.Refusal{"link": rooted.Link, "none": rooted.NotThere,
		"out": rooted.Directory, "private": rooted.Failed, "../x": rooted.NotThere} {
		_, err := s.ReadFile(t.Context(), dir, below, 100)
		if own := (*rooted.Error)(nil); !errors.As(err, &own) || own.Refusal != want {
			t.Errorf("%s: %v, want %s", below, err, want)
		}
	}
	if all, err := s.ListFiles(t.Context(), dir, "out"); err != nil || len(all) != 2 ||
		all[0] != (rooted.Entry{Name: "a.txt", Size: 18}) {
		t.Errorf("it lists %+v, %v", all, err)
	}
	named := []string{filepath.Join(dir, "link"), filepath.Join(dir, "out/a.txt"), filepath.Join(dir, "none"),
		"/proc/self/cwd"}
	if got, err := s.RealPaths(t.Context(), named); err != nil ||
		!slices.Equal(got[:3], []string{"/etc/passwd", named[1], named[2]}) || got[3] == named[3] {
		t.Errorf("it resolves %v, %v", got, err)
	}
	if err := s.WriteFile(t.Context(), dir, "made.txt", []byte("made")); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "made.txt")); err != nil || string(b) != "made" {
		t.Errorf("it made %q, %v", b, err)
	}
	if err := s.WriteFile(t.Context(), dir, "made.txt", []byte("again")); err == nil {
		t.Error("a file was replaced")
	}
}
