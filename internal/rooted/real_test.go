package rooted

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRealPath(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(base, "dir", "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"linked": "dir", "dangling": "missing/target", "chain": "dangling", "outside": "/missing/outside",
	} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	var paths, real []string
	for path, want := range map[string]string{
		"dir/below":         "dir/below",
		"linked/below":      "dir/below",
		"linked/a/b/c":      "dir/a/b/c",
		"linked/../file":    "file", // RealPath cleans the path first
		"a/b/c":             "a/b/c",
		"file/a/b":          "file/a/b",
		"dangling":          "missing/target",
		"dangling/a/b":      "missing/target/a/b",
		"chain/a":           "missing/target/a",
		"linked/../chain/a": "missing/target/a",
	} {
		if got, err := RealPath(filepath.Join(base, path)); err != nil || got != filepath.Join(base, want) {
			t.Errorf("%s is %s (%v)", path, got, err)
		}
		paths, real = append(paths, filepath.Join(base, path)), append(real, filepath.Join(base, want))
	}
	if got := RealPaths(paths); !slices.Equal(got, real) {
		t.Errorf("%q together are %q, not %q", paths, got, real)
	}
	if got, err := RealPath(filepath.Join(base, "outside/a")); err != nil || got != "/missing/outside/a" {
		t.Errorf("outside is %s (%v)", got, err)
	}
	if got, err := RealPath("/"); err != nil || got != "/" {
		t.Errorf("/ is %s (%v)", got, err)
	}
}
