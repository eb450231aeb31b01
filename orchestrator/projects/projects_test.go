package projects_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/git"
	"ductor/orchestrator"
	"ductor/orchestrator/projects"
)

func TestMain(m *testing.M) { clitest.Main(m) }

type host struct{ launcher cli.Launcher }

func (h host) Launcher(cli.Sandbox) (cli.Launcher, error) { return h.launcher, nil }

// engine is a conversation that works in a directory inside a root.
type engine struct {
	root, dir string
	running   *orchestrator.RunningTurn
}

func (e *engine) Status(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
	return orchestrator.Status{Dir: e.dir, Running: e.running}, nil
}

func (e *engine) SetDir(_ context.Context, _ orchestrator.ConversationID, path string,
	_ orchestrator.PersonID) (string, error) {
	dir, err := e.Directory(path)
	if err == nil {
		e.dir = dir
	}
	return dir, err
}

func (e *engine) Directory(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", orchestrator.ErrNotADir
	}
	if !cli.Lies(real, e.root) {
		return "", orchestrator.ErrOutsideRoot
	}
	return real, nil
}

type rig struct {
	*projects.Book
	t      *testing.T
	base   string
	engine *engine
}

func newRig(t *testing.T) *rig {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", base)
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	r := &rig{t: t, base: base, engine: &engine{root: filepath.Join(base, "src")}}
	r.sh(`mkdir -p src/plain src/deep/er/est/too src/a/app src/b/app src/.hidden/repo away
		for d in src/web src/a/app src/b/app src/deep/er/lib src/deep/er/est/too src/.hidden/repo away/repo; do
			git init -q -b main $d; (cd $d; git config user.name A; git config user.email a@b; echo one > a; git add .; git commit -qm one)
		done; ln -s ../away/repo src/link`)
	r.engine.dir = r.engine.root
	r.Book = projects.New(projects.Options{Named: func() map[string]string {
		return map[string]string{"shop": r.at("src/plain"), "gone": r.at("src/none"), "out": r.at("away")}
	}, Roots: []string{r.engine.root}})
	r.Attach(r.engine, git.New(host{clitest.Host(t)}, t.TempDir()))
	return r
}

func (r *rig) at(path string) string { return filepath.Join(r.base, path) }

func (r *rig) sh(script string) {
	r.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = r.base
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

var by = orchestrator.Press{Conversation: orchestrator.ConversationID{Chat: 7}, Person: 1, Role: orchestrator.RoleUser}

// Projects lists configured projects and the repositories inside the roots. It finds none outside of a root, behind a
// link, in a hidden directory or too deep.
func TestProjects(t *testing.T) {
	r := newRig(t)
	all, err := r.Projects(t.Context())
	r.must(err)
	want := []orchestrator.Project{
		{Name: r.at("src/b/app"), Dir: r.at("src/b/app")}, {Name: "app", Dir: r.at("src/a/app")}, {Name: "lib", Dir: r.at("src/deep/er/lib")},
		{Name: "shop", Dir: r.at("src/plain")}, {Name: "web", Dir: r.at("src/web")},
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
	if _, err := r.OpenProject(t.Context(), by, "out", ""); !errors.Is(err, orchestrator.ErrNoProject) {
		t.Errorf("a project outside is opened: %v", err)
	}
	if dir, err := r.OpenProject(t.Context(), by, "lib", ""); err != nil || dir != r.engine.dir || dir != r.at("src/deep/er/lib") {
		t.Errorf("lib is opened in %s, %v", dir, err)
	}
	if _, err := r.OpenProject(t.Context(), by, "shop", "x"); !errors.Is(err, orchestrator.ErrNoRepository) {
		t.Errorf("a branch of what is no repository: %v", err)
	}
}

// A branch is checked out once, in a separate directory that git ignores. A merged worktree can be removed, a dirty one
// only if the user confirms it, and none while a turn runs there.
func TestABranchHasAWorktree(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	open := func(branch string) string {
		t.Helper()
		dir, err := r.OpenProject(ctx, by, "web", branch)
		r.must(err)
		return dir
	}
	fix := open("fix/it")
	if !strings.HasPrefix(fix, r.at("src/web/.worktrees/fix-it-")) || r.engine.dir != fix {
		t.Errorf("it is in %s, and the conversation in %s", fix, r.engine.dir)
	}
	if again := open("fix/it"); again != fix {
		t.Errorf("the second time it is in %s", again)
	}
	if other := open("fix-it"); other == fix || filepath.Base(other) != "fix-it" {
		t.Errorf("another branch is in %s", other)
	}
	r.sh(`cd src/web; test -z "$(git status --porcelain)"; cd ` + fix + `; echo new > n; git add .; git commit -qm n; echo more >> n`)
	trees, err := r.Worktrees(ctx, by.Conversation)
	r.must(err)
	if len(trees) != 3 || !trees[0].Main || trees[1].Branch == "fix/it" && trees[1].Merged {
		t.Errorf("%+v", trees)
	}
	for _, bad := range []string{"-d", "a b"} {
		if _, err := r.OpenProject(ctx, by, "web", bad); !errors.Is(err, orchestrator.ErrBadBranch) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	r.must(r.OpenWorktree(ctx, by, fix))
	r.engine.running = &orchestrator.RunningTurn{}
	if err := r.RemoveWorktree(ctx, by, fix, orchestrator.DropChanges); !errors.Is(err, orchestrator.ErrStillOpen) {
		t.Errorf("it is removed under a turn: %v", err)
	}
	r.engine.running = nil
	if err := r.RemoveWorktree(ctx, by, fix, orchestrator.KeepChanges); !errors.Is(err, orchestrator.ErrDirtyWorktree) {
		t.Errorf("a dirty one is removed: %v", err)
	}
	r.must(r.RemoveWorktree(ctx, by, fix, orchestrator.DropChanges))
	if _, err := os.Stat(fix); err == nil || r.engine.dir != r.at("src/web") {
		t.Errorf("afterwards it is there: %v; and the conversation is in %s", err == nil, r.engine.dir)
	}
	for _, dir := range []string{r.at("src/web"), r.at("away/repo"), fix} {
		if err := r.RemoveWorktree(ctx, by, dir, orchestrator.DropChanges); !errors.Is(err, orchestrator.ErrNoProject) {
			t.Errorf("%s is removed: %v", dir, err)
		}
	}
}

// A link in place of the worktrees' directory is refused.
func TestWorktreesStayInsideTheRepository(t *testing.T) {
	r := newRig(t)
	r.sh("ln -s ../../away src/web/.worktrees")
	if dir, err := r.OpenProject(t.Context(), by, "web", "x"); err == nil {
		t.Errorf("it is in %s", dir)
	}
	if entries, err := os.ReadDir(r.at("away")); err != nil || len(entries) != 1 {
		t.Errorf("outside there are %v, %v", entries, err)
	}
}

// Git writes where links in .git lead, and checks out a branch where the folder of its worktree leads.
func TestNoLinkOfARepositoryLeadsAWorktreeOutside(t *testing.T) {
	for what, plant := range map[string]string{
		"the folder":    "cd src/web; mkdir .worktrees; ln -s ../../../away/empty .worktrees/x",
		"the log":       "cd src/web/.git/logs/refs/heads; ln -s ../../../../../../away/rc x",
		"the worktrees": "cd src/web; ln -s ../../../away/empty .git/worktrees",
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.sh("mkdir away/empty; echo mine > away/rc; " + plant)
			if dir, err := r.OpenProject(t.Context(), by, "web", "x"); !errors.Is(err, orchestrator.ErrOutsideRoot) {
				t.Errorf("it is in %s, %v", dir, err)
			}
			r.sh(`test mine = "$(cat away/rc)"; rmdir away/empty`)
		})
	}
}

// boxed is a policy with a sandbox for one directory.
type boxed struct {
	orchestrator.Sandboxes
	dir string
}

func (b boxed) Of(dir string, _ orchestrator.ConversationID) cli.Sandbox {
	if cli.Lies(dir, b.dir) {
		return "box"
	}
	return ""
}

// An agent in a sandbox writes the list of worktrees, so it can contain any directory of this host.
func TestAWorktreeIsInTheEnvironmentOfItsRepository(t *testing.T) {
	r := newRig(t)
	r.Book = projects.New(projects.Options{Named: func() map[string]string { return nil },
		Roots: []string{r.engine.root}, Sandboxes: boxed{dir: r.at("src/web")}})
	r.Attach(r.engine, git.New(host{clitest.Host(t)}, t.TempDir()))
	r.sh(`cd src/web; git worktree add -q ../host; git worktree add -q inside
		cd ../a/app; git worktree add -q ../../web/box; git worktree add -q ../../free`)
	for dir, want := range map[string][]string{
		"src/web": {r.at("src/web"), r.at("src/web/inside")}, "src/a/app": {r.at("src/a/app"), r.at("src/free")},
	} {
		r.engine.dir = r.at(dir)
		all, err := r.Worktrees(t.Context(), by.Conversation)
		r.must(err)
		var dirs []string
		for _, w := range all {
			dirs = append(dirs, w.Dir)
		}
		if d := cmp.Diff(want, dirs); d != "" {
			t.Errorf("the worktrees of %s: %s", dir, d)
		}
	}
	r.engine.dir = r.at("src/web")
	if err := r.OpenWorktree(t.Context(), by, r.at("src/host")); !errors.Is(err, orchestrator.ErrNoProject) {
		t.Errorf("a worktree of a sandbox opens on the host: %v", err)
	}
	if dir, err := r.OpenProject(t.Context(), by, "web", "host"); err == nil || r.engine.dir != r.at("src/web") {
		t.Errorf("a branch of a sandbox opens in %s, and the chat is in %s", dir, r.engine.dir)
	}
}
