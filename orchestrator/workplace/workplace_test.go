package workplace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// tree creates directories and links below a new directory, and returns its real path.
func tree(t *testing.T, dirs []string, links map[string]string) string {
	t.Helper()
	base := cli.RealPath(t.TempDir())
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range links {
		if err := os.Symlink(filepath.Join(base, target), filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// A session can use its directory if all links in the path belong to the configuration. This includes sessions from
// before the user moved a root and created a link in its place.
func TestLinksOfTheConfiguration(t *testing.T) {
	base := tree(t, []string{"data/src/shop/api", "data/src/v2/sub", "plain/shop"},
		map[string]string{"src": "data/src", "data/src/current": "data/src/v2"})
	at := func(path string) string { return filepath.Join(base, path) }
	roots, start := []string{at("src"), at("plain") + "/"}, at("src/current")
	p := Places{Dir: start, Roots: roots, Links: LinksOf(cli.RealPath, append(roots, start)...)}
	for dir, real := range map[string]string{
		"src": "data/src", "src/shop/api": "data/src/shop/api", "data/src/shop": "data/src/shop",
		"src/current": "data/src/v2", "src/current/sub": "data/src/v2/sub", "plain/shop": "plain/shop",
		"plain/../src/shop": "data/src/shop",
	} {
		if err := p.CheckDir(at(dir)); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		if got := p.Real(at(dir)); got != at(real) {
			t.Errorf("%s is %s, not %s", dir, got, at(real))
		}
	}
}

// An agent replaces the directory of its session, or a directory above it, by a link to another directory inside the
// roots, which has other limits.
func TestAttackADirectoryBecomesALink(t *testing.T) {
	base := tree(t, []string{"data/src/shop/api", "data/src/other/api"}, map[string]string{"src": "data/src"})
	at := func(path string) string { return filepath.Join(base, path) }
	roots := []string{at("src")}
	p := Places{Dir: at("src/shop"), Roots: roots, Links: LinksOf(cli.RealPath, append(roots, at("src/shop"))...)}
	for _, replaced := range []string{"data/src/shop/api", "data/src/shop"} {
		if err := errors.Join(os.Rename(at(replaced), at("data/src/moved-"+filepath.Base(replaced))),
			os.Symlink(at("data/src/other"), at(replaced))); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"src/shop/api", "data/src/shop/api"} {
			err := p.CheckDir(at(dir))
			if !errors.Is(err, orchestrator.ErrReplacedDir) {
				t.Errorf("%s with a link at %s: %v", dir, replaced, err)
			}
			for _, language := range lang.Languages() {
				text := cli.AsFailure("", err).Sentence(language.Printer())
				if !strings.Contains(text, at(dir)) || !strings.Contains(text, at("data/src/other")) {
					t.Errorf("%q does not say where %s leads", text, dir)
				}
			}
		}
		// The user can choose the target of the link.
		dir, moves, err := p.Move(at("src/shop/api"), at("src/shop/api"))
		if err != nil || !moves || !cli.Lies(dir, at("data/src/other")) || p.CheckDir(dir) != nil {
			t.Errorf("the user chooses %s, another directory: %v, %v", dir, moves, err)
		}
		if got := p.Real(at("src/shop/api")); got != at("data/src/shop/api") {
			t.Errorf("with a link at %s, the real path is %s", replaced, got)
		}
	}
}
