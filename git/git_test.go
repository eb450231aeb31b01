package git_test

import (
	"errors"
	"flag"
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
)

// Each check of a property runs about sixty processes. -rapid.checks overrides the number of checks.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "12"); err != nil {
		panic(err)
	}
	clitest.Main(m)
}

type host struct{ launcher cli.Launcher }

func (h host) Launcher(in cli.Sandbox) (cli.Launcher, error) {
	if in != "" {
		return nil, errors.New("there is no sandbox")
	}
	return h.launcher, nil
}

// repo is a test repository with one commit.
type repo struct {
	t   *testing.T
	git *git.Git
	at  git.Place
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	r := &repo{t: t, git: git.New(host{clitest.Host(t)}, filepath.Join(dir, "private")), at: git.Place{Dir: filepath.Join(dir, "app")}}
	r.sh("", `mkdir app home; cd app; git init -q -b main; git config user.name Ann; git config user.email ann@example.com; echo one > a.txt; git add .; git commit -qm one`)
	return r
}

// sh runs a script in a directory beside the repository, as the user would.
func (r *repo) sh(below, script string) string {
	r.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = filepath.Join(filepath.Dir(r.at.Dir), below)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func (r *repo) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) worktrees() (all []orchestrator.Worktree) {
	r.t.Helper()
	all, err := r.git.Worktrees(r.t.Context(), r.at)
	r.must(err)
	return all
}

// AddWorktree works for new branches, existing ones and those of origin. Worktrees reports merged branches.
// RemoveWorktree removes a dirty worktree only if the caller agrees, and always keeps the branch.
func TestWorktrees(t *testing.T) {
	r := newRepo(t)
	ctx := t.Context()
	r.sh("app", `git branch old; git update-ref refs/remotes/origin/theirs HEAD; git config remote.origin.url /nowhere; git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'`)
	dir := func(name string) string { return filepath.Join(filepath.Dir(r.at.Dir), name) }
	for _, branch := range []string{"new", "old", "theirs"} {
		r.must(r.git.AddWorktree(ctx, r.at, branch, dir(branch)))
	}
	r.sh("new", `echo two > b.txt; git add .; git commit -qm two`)
	want := []orchestrator.Worktree{
		{Dir: r.at.Dir, Branch: "main", Main: true}, {Dir: dir("new"), Branch: "new"},
		{Dir: dir("old"), Branch: "old", Merged: true}, {Dir: dir("theirs"), Branch: "theirs", Merged: true},
	}
	if d := cmp.Diff(want, r.worktrees()); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"-f", "a..b", "", "--", "x y"} {
		if err := r.git.AddWorktree(ctx, r.at, bad, dir("bad")); !errors.Is(err, orchestrator.ErrBadBranch) {
			t.Errorf("the branch %q: %v", bad, err)
		}
	}
	if err := r.git.AddWorktree(ctx, r.at, "old", dir("again")); err == nil {
		t.Error("a branch is checked out twice")
	}
	r.sh("old", `echo mine > note.txt`)
	old := git.Place{Dir: dir("old")}
	if dirty, err := r.git.Dirty(ctx, old); err != nil || !dirty {
		t.Errorf("a file that is not added: %v, %v", dirty, err)
	}
	if err := r.git.RemoveWorktree(ctx, r.at, dir("old"), orchestrator.KeepChanges); !errors.Is(err, orchestrator.ErrDirtyWorktree) {
		t.Errorf("a dirty worktree is removed: %v", err)
	}
	if got := r.sh("old", "cat note.txt"); got != "mine\n" {
		t.Errorf("the note is %q", got)
	}
	r.must(r.git.RemoveWorktree(ctx, r.at, dir("old"), orchestrator.DropChanges))
	r.must(r.git.RemoveWorktree(ctx, r.at, dir("theirs"), orchestrator.KeepChanges))
	r.sh("", "rm -r new")
	r.sh("app", "git merge -q new; git rev-parse --verify -q old")
	if d := cmp.Diff([]orchestrator.Worktree{want[0], {Dir: dir("new"), Branch: "new", Merged: true, Gone: true}}, r.worktrees()); d != "" {
		t.Error(d)
	}
	r.must(r.git.RemoveWorktree(ctx, r.at, dir("new"), orchestrator.KeepChanges))
	if _, err := r.git.Worktrees(ctx, git.Place{Dir: filepath.Dir(r.at.Dir)}); err == nil {
		t.Error("what is no repository has worktrees")
	}
	if _, err := r.git.Worktrees(ctx, git.Place{In: "none", Dir: r.at.Dir}); err == nil {
		t.Error("it runs outside of its environment")
	}
}

// A worktree whose branch has no commit yet is dirty if its index or its directory has files.
func TestAWorktreeWithoutACommit(t *testing.T) {
	r := newRepo(t)
	tree := filepath.Join(filepath.Dir(r.at.Dir), "new")
	r.must(r.git.AddWorktree(t.Context(), r.at, "new", tree))
	r.sh("new", "git checkout -q --orphan empty")
	for _, script := range []string{"true", "rm a.txt", "git reset -q; echo two > a.txt"} {
		r.sh("new", script)
		err := r.git.RemoveWorktree(t.Context(), r.at, tree, orchestrator.KeepChanges)
		if !errors.Is(err, orchestrator.ErrDirtyWorktree) {
			t.Fatalf("after %s: %v", script, err)
		}
	}
	r.sh("new", "rm a.txt")
	r.must(r.git.RemoveWorktree(t.Context(), r.at, tree, orchestrator.KeepChanges))
}

// ductor runs no program that a repository configures.
func TestNoProgramOfARepositoryRuns(t *testing.T) {
	r := newRepo(t)
	canary := filepath.Join(filepath.Dir(r.at.Dir), "ran")
	r.sh("", `printf '#!/bin/sh\necho "$0 $*" >> `+canary+`\ncat\n' > evil; chmod +x evil; cp evil app/.git/hooks/post-checkout; cp evil app/.git/hooks/pre-commit
		cp evil app/.git/hooks/reference-transaction; cp evil app/.git/hooks/post-index-change
		git init -q app/sub; cd app/sub; git config user.name A; git config user.email a@b; echo x > x; git -c core.hooksPath=/dev/null add .; git commit -qm x`)
	r.sh("app", `e=$(dirname "$PWD")/evil
		printf '*.txt filter=bad.one diff=bad\n*.md filter=also=odd\n' > .gitattributes; echo three > c.md
		git -c core.hooksPath=/dev/null add . 2>/dev/null; git -c core.hooksPath=/dev/null commit -qm attributes
		for d in . sub; do
			git -C $d config core.fsmonitor "$e"; git -C $d config core.pager "$e"; git -C $d config diff.external "$e"
			for n in bad.one also=odd; do for k in clean smudge process; do git -C $d config "filter.$n.$k" "$e"; done; git -C $d config "filter.$n.required" true; done
			git -C $d config diff.bad.textconv "$e"; git -C $d config diff.bad.command "$e"; git -C $d config core.sshCommand "$e"; git -C $d config gpg.program "$e"; git -C $d config log.showSignature true
		done
		echo changed > a.txt; echo changed > c.md; echo y > sub/x; touch .gitattributes`)
	if _, err := os.Stat(canary); err == nil {
		r.must(os.Remove(canary))
	}
	ctx := t.Context()
	if dirty, err := r.git.Dirty(ctx, r.at); err != nil || !dirty {
		t.Errorf("dirty: %v, %v", dirty, err)
	}
	for _, args := range [][]string{{"diff"}, {"diff", "HEAD"}, {"log", "-p"}, {"show"}, {"stash", "list"}} {
		out, err := r.git.Run(ctx, r.at, args...)
		if err != nil || args[0] == "diff" && !strings.Contains(out, "+changed") {
			t.Errorf("%q gives %q, %v", args, out, err)
		}
	}
	tree := filepath.Join(filepath.Dir(r.at.Dir), "tree")
	r.must(r.git.AddWorktree(ctx, r.at, "safe", tree))
	if text, err := os.ReadFile(filepath.Join(tree, "a.txt")); err != nil || string(text) != "one\n" {
		t.Errorf("the worktree has %q, %v", text, err)
	}
	r.worktrees()
	if ran, err := os.ReadFile(canary); err == nil {
		t.Errorf("programs of the repository ran:\n%s", ran)
	}
	// Check the canary: git does run these programs if the user runs it.
	if r.sh("app", "git diff || true"); canaryMissing(canary) {
		t.Error("nothing would have run anyway")
	}
}

func canaryMissing(path string) bool {
	_, err := os.Stat(path)
	return err != nil
}
