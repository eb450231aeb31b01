package app

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// The configuration may name directories by links. If a link leads from a sandbox to this host, an agent in the sandbox
// may have created it before ductor started. So no job follows it, no session uses it, and
// only the limits of a project apply to its target.
func TestLinksInTheConfiguration(t *testing.T) {
	base := cli.RealPath(t.TempDir())
	at := func(path string) string { return filepath.Join(base, path) }
	for _, dir := range []string{"src/shop/v2", "src/open", "src/boxed"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("v2", at("src/shop/current")), os.Symlink(at("src/open"), at("src/boxed/out")),
		os.Symlink("src", at("home"))); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Projects.Roots, cfg.Projects.DefaultDir = []string{at("home")}, at("home")
	boxed := config.SandboxProject{Dir: at("home/boxed"), Settings: cfg.Sandbox.Settings}
	boxed.Mode = orchestrator.SandboxDocker
	cfg.Sandbox.Projects = map[string]config.SandboxProject{"boxed": boxed}
	for dir, want := range map[string]string{
		"home/shop/current": "src/shop/v2", "src/shop/v2": "src/shop/v2", "home/boxed": "src/boxed",
		"home/open": "src/open", "home/boxed/out": "home/boxed/out", "src/boxed/out": "src/boxed/out",
	} {
		j := jobOf(cfg, orchestrator.ConversationID{}, orchestrator.JobTurn{Dir: at(dir)}, orchestrator.QuietHours{})
		if j.Dir != at(want) {
			t.Errorf("a job in %s works in %s, not in %s", dir, j.Dir, at(want))
		}
	}
	if j := jobOf(cfg, orchestrator.ConversationID{}, orchestrator.JobTurn{}, orchestrator.QuietHours{}); j.Dir != "" {
		t.Errorf("a job without a directory works in %s", j.Dir)
	}
	a := &App{envs: environment.Environments{Sandboxes: &environment.Sandboxes{}}}
	if err := a.places(cfg).CheckDir(at("home/open")); err != nil {
		t.Errorf("a session behind a link of the roots: %v", err)
	}
	cfg.Projects.DefaultDir = at("home/boxed/out")
	for _, dir := range []string{"home/boxed/out", "src/boxed/out"} {
		if err := a.places(cfg).CheckDir(at(dir)); !errors.Is(err, orchestrator.ErrReplacedDir) {
			t.Errorf("a session in %s: %v", dir, err)
		}
	}
	testLinkedProjects(t, cfg, at)
}

// testLinkedProjects checks that a project behind a link has its whole policy, but only its limits if the link leads to
// another environment.
func testLinkedProjects(t *testing.T, cfg config.Config, at func(path string) string) {
	t.Helper()
	grants := orchestrator.Bounds{AllowedTools: []string{"shell"}, AddDirs: []string{at("src")}, MaxTurns: 3}
	shop := orchestrator.ProjectPolicy{Dir: at("home/shop/current"), Tools: cli.ToolList{Denied: []string{"web"}},
		Context: []string{"README"}, ShareSessions: true, Bounds: grants}
	cfg.Projects.Named = map[string]orchestrator.ProjectPolicy{"shop": shop}
	shop.Dir = at("src/shop/v2")
	if diff := cmp.Diff([]orchestrator.ProjectPolicy{shop}, projectsOf(cfg)); diff != "" {
		t.Errorf("a link within an environment: %s", diff)
	}
	shop.Dir = at("home/boxed/out")
	around := orchestrator.ProjectPolicy{Dir: at("src"), Tools: cli.ToolList{Denied: []string{"edit"}},
		Context: []string{"TODO"}, Bounds: orchestrator.Bounds{AllowedTools: []string{"read"}, MaxTurns: 5}}
	for _, other := range []orchestrator.ProjectPolicy{{}, around} {
		cfg.Projects.Named = map[string]orchestrator.ProjectPolicy{"shop": shop}
		want := []orchestrator.ProjectPolicy{{Dir: at("src/open"), Bounds: orchestrator.Bounds{MaxTurns: 3}}}
		want[0].Tools.Denied = append(slices.Clone(other.Tools.Denied), "web")
		want[0].Bounds.AllowedTools = other.Bounds.AllowedTools
		if other.Dir != "" {
			cfg.Projects.Named["around"] = other
			want = append(want, other)
		}
		if diff := cmp.Diff(append(want, shop), projectsOf(cfg)); diff != "" {
			t.Errorf("a link to another environment, inside the project %q: %s", other.Dir, diff)
		}
	}
}
