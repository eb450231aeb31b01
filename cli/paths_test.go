package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ductor/cli"
)

// A path is in a directory if the relative path between them only leads down.
func TestAPathLiesWhereTheWayLeadsDown(t *testing.T) {
	paths := rapid.StringOfN(rapid.RuneFrom([]rune("/.ab")), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		root := rapid.SampledFrom([]string{"", "/"})
		path, dir := root.Draw(t, "root of the path")+paths.Draw(t, "path"), root.Draw(t, "root of the directory")+paths.Draw(t, "directory")
		way, err := filepath.Rel(dir, path)
		if got, want := cli.Lies(path, dir), err == nil && filepath.IsLocal(way); got != want {
			t.Fatalf("%q lies in %q: %v, want %v", path, dir, got, want)
		}
	})
}

// Whether an edit is allowed depends on where its path leads, not on its spelling.
func TestPathsAreFollowedBeforeTheyAreCompared(t *testing.T) {
	base, outside := cli.RealPath(t.TempDir()), cli.RealPath(t.TempDir())
	work := filepath.Join(base, "work")
	for _, dir := range []string{"sub", "sub/.ssh", ".git/hooks"} {
		must(t, os.MkdirAll(filepath.Join(work, dir), 0o755))
	}
	for name, to := range map[string]string{
		"out": outside, "hooks": ".git/hooks", "there": "sub", "new": filepath.Join(outside, "not there"),
		"again": "new", "loop": "loop", "sibling": "../work2/x",
	} {
		must(t, os.Symlink(to, filepath.Join(work, name)))
	}
	must(t, os.Symlink(work, filepath.Join(base, "link")))
	for path, want := range map[string]bool{
		"a.txt": true, "sub/a.txt": true, "there/a.txt": true, "no/such/dir/a.txt": true, work + "/a.txt": true,
		"sub/../a.txt": true,
		"":             false, ".": false, "..": false, "../x": false, "/etc/passwd": false, "sub/../../x": false,
		".bashrc": false, ".git/hooks/pre-commit": false, "hooks/pre-commit": false, "sub/.ssh/authorized_keys": false,
		"out/a.txt": false, "out": false, "new": false, "again": false, "new/a.txt": false, "loop": false, "sibling": false,
		"~/a.txt": false, filepath.Join(base, "link/a.txt"): false, work + "2/a.txt": false,
	} {
		if got := cli.VisibleBelow(work, path); got != want {
			t.Errorf("VisibleBelow(%q) is %v", path, got)
		}
	}
	if link := filepath.Join(base, "link"); !cli.VisibleBelow(link, "a.txt") || !cli.VisibleBelow(link, link+"/a.txt") || cli.VisibleBelow("work", "a.txt") || cli.VisibleBelow("/no/such/place", "a.txt") {
		t.Error("a directory that is reached by a link is not taken for what it is, or a relative one is taken at all")
	}

	own := []string{filepath.Join(outside, "state"), filepath.Join(work, "config.toml")}
	for path, want := range map[string]bool{
		"config.toml": true, work + "/./sub/../config.toml": true, "out/state": true, "out/state/ductor.db": true,
		filepath.Join(base, "link/config.toml"): true, "a.toml": false, "out/state2": false, "out": false, "config.toml.bak": false,
	} {
		if got := cli.Touches(own, work, path); got != want {
			t.Errorf("Touches(%q) is %v", path, got)
		}
	}
	if own := []string{filepath.Join(outside, "not there")}; !cli.Touches(own, work, "again") {
		t.Error("a link to a file that is not there yet is not followed")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	keep := func(content string) string {
		t.Helper()
		path, err := cli.Keep(dir, "prompt", ".md", content)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content || path != cli.KeptFile(dir, "prompt", ".md", content) {
			t.Errorf("%s holds %q: %v", path, got, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || time.Since(info.ModTime()) > time.Minute {
			t.Errorf("%v: %v", info, err)
		}
		return path
	}
	path := keep("be brief")
	for name, spoil := range map[string]func() error{
		"another content": func() error { return os.WriteFile(path, []byte("be rude"), 0o600) },
		"a link":          func() error { return errors.Join(os.Remove(path), os.Symlink("/etc/hostname", path)) },
		"not used long":   func() error { return os.Chtimes(path, time.Time{}, time.Now().Add(-23*time.Hour)) },
		"a pipe":          func() error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
		"a directory":     func() error { return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700)) },
		"nothing":         func() error { return nil },
	} {
		if err := spoil(); err != nil {
			t.Fatal(name, err)
		}
		if again := keep("be brief"); again != path {
			t.Errorf("%s: %s, then %s", name, path, again)
		}
	}
	if other := keep("be kind"); other == path {
		t.Error("two contents share a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v: %v", entries, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Keep(dir, "prompt", ".md", "be brief"); err == nil {
		t.Error("a file is kept where others can put one")
	}
}
