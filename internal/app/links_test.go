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
	a := &App{}
	a.setStart(cfg)
	for dir, want := range map[string]string{
		"home/shop/current": "src/shop/v2", "src/shop/v2": "src/shop/v2", "home/boxed": "src/boxed",
		"home/open": "src/open", "home/boxed/out": "home/boxed/out", "src/boxed/out": "src/boxed/out",
	} {
		turn := orchestrator.JobTurn{Dir: at(dir)}
		j := jobOf(cfg, a.now().policy, orchestrator.ConversationID{}, turn, orchestrator.QuietHours{})
		if j.Dir != at(want) {
			t.Errorf("a job in %s works in %s, not in %s", dir, j.Dir, at(want))
		}
	}
	none := jobOf(cfg, a.now().policy, orchestrator.ConversationID{}, orchestrator.JobTurn{}, orchestrator.QuietHours{})
	if none.Dir != "" {
		t.Errorf("a job without a directory works in %s", none.Dir)
	}
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

// An agent in the sandbox of a project replaces the project by a link to a directory without a sandbox, and the owner
// reloads the configuration. The project's job still has its directory, which it cannot enter. So it does not leave the
// sandbox, and what the owner allowed in the project does not apply elsewhere.
func TestAttackALinkBeforeAReload(t *testing.T) {
	r := newReloadRig(t, `
[sandbox.projects.shop]
dir = "~/ductor/shop"
mode = "docker"
[jobs.tidy]
schedule = "every day at 12:00"
prompt = "tidy up"
dir = "~/ductor/shop"
`)
	shop := filepath.Join(r.cfg.Projects.Roots[0], "shop")
	other := filepath.Join(r.cfg.Projects.Roots[0], "other")
	if err := errors.Join(os.Rename(shop, shop+".moved"), os.Symlink(other, shop)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	jobs, err := r.db.Jobs(t.Context())
	i := slices.IndexFunc(jobs, func(j orchestrator.JobStatus) bool { return j.Job.Name == "tidy" })
	if err != nil || i < 0 || jobs[i].Job.Dir != shop {
		t.Errorf("the jobs are %+v: %v", jobs, err)
	}
	places := r.places(r.cfg)
	if in, err := places.Sandbox(orchestrator.ConversationID{}, shop, ""); in != "shop" || err != nil {
		t.Errorf("the job runs in %q: %v", in, err)
	}
	if err := places.CheckDir(shop); !errors.Is(err, orchestrator.ErrReplacedDir) {
		t.Errorf("the job's directory: %v", err)
	}
	for _, p := range r.now().turns.Projects {
		if p.Dir == other && (len(p.Bounds.AllowedTools) > 0 || len(p.Context) > 0) {
			t.Errorf("the project has moved: %+v", p)
		}
	}
	isShop := func(p orchestrator.ProjectPolicy) bool { return p.Dir == shop }
	if !slices.ContainsFunc(r.now().turns.Projects, isShop) {
		t.Errorf("no project is in %s: %+v", shop, r.now().turns.Projects)
	}
}

// An agent replaces a root inside of another root by a link before ductor starts. Users cannot choose the target of the
// link, and no job follows it. Without sandboxes, the link may be the owner's.
func TestAttackALinkInPlaceOfARoot(t *testing.T) {
	base := cli.RealPath(t.TempDir())
	at := func(path string) string { return filepath.Join(base, path) }
	if err := errors.Join(os.MkdirAll(at("src"), 0o700), os.MkdirAll(at("home/x"), 0o700),
		os.Symlink(at("home"), at("src/repo"))); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Projects.Roots, cfg.Projects.DefaultDir = []string{at("src"), at("src/repo")}, at("src/repo")
	a := &App{}
	a.setStart(cfg)
	if err := a.places(cfg).CheckDir(at("src/repo/x")); err != nil {
		t.Errorf("a session behind a link of the owner: %v", err)
	}
	cfg.Sandbox.Mode = orchestrator.SandboxDocker
	a.setStart(cfg)
	for _, dir := range []string{"home", "home/x", "src/repo", "src/repo/x"} {
		if got, err := a.places(cfg).Resolve(at("src"), at(dir)); !errors.Is(err, orchestrator.ErrOutsideRoot) {
			t.Errorf("a user can choose %s: %s, %v", dir, got, err)
		}
	}
	turn := orchestrator.JobTurn{Dir: at("src/repo/x")}
	j := jobOf(cfg, a.now().policy, orchestrator.ConversationID{}, turn, orchestrator.QuietHours{})
	places := a.places(cfg)
	if j.Dir != turn.Dir || places.CheckDir(j.Dir) == nil || places.CheckDir(at("src/repo")) == nil {
		t.Errorf("a job works in %s", j.Dir)
	}
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
	if diff := cmp.Diff([]orchestrator.ProjectPolicy{shop}, projectsOf(cfg, environment.NewPolicy(cfg))); diff != "" {
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
		if diff := cmp.Diff(append(want, shop), projectsOf(cfg, environment.NewPolicy(cfg))); diff != "" {
			t.Errorf("a link to another environment, inside the project %q: %s", other.Dir, diff)
		}
	}
}
