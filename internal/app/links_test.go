package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ductor/cli"
	"ductor/internal/app/environment"
	"ductor/internal/config"
	"ductor/orchestrator"
)

// The configuration may name directories by links. If a link leads from a sandbox to this host, an agent in the sandbox
// may have created it before ductor started. So no job follows it, the policy of a project does not apply to its target,
// and no session uses it.
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
	for dir, want := range map[string]string{"home/shop/current": "src/shop/v2", "home/boxed/out": "home/boxed/out"} {
		cfg.Projects.Named = map[string]orchestrator.ProjectPolicy{"shop": {Dir: at(dir)}}
		if all := projectsOf(cfg); len(all) != 1 || all[0].Dir != at(want) {
			t.Errorf("the policy of a project in %s applies to %+v", dir, all)
		}
	}
}
