package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ductor/git"
	"ductor/orchestrator"
)

// A configuration that came with a repository, for example from an archive, runs nothing: not the hooks of Git 2.54,
// which have arbitrary names, no filters that apply only in a new worktree, and no filter called "unset". Older
// versions of git ignore such hooks.
func TestNoProgramOfAConfigurationRuns(t *testing.T) {
	r := newRepo(t)
	above := filepath.Dir(r.at.Dir)
	r.sh("app", `printf '#!/bin/sh\necho "$0 $*" >> `+above+`/ran\ncat\n' > ../evil; chmod +x ../evil
		printf '*.txt filter=later\n*.md filter=unset\n*.go filter=unspecified\n' > .gitattributes; git add .; git commit -qm attributes
		for event in post-checkout post-index-change reference-transaction; do git config --add hook.a.b.event $event; done
		git config hook.a.b.command `+above+`/evil
		for n in unset unspecified; do git config filter.$n.clean `+above+`/evil; git config filter.$n.required true; done
		git config includeIf.gitdir:**/worktrees/**.path later
		git config --file .git/later hook.later.command `+above+`/evil; git config --file .git/later hook.later.event reference-transaction
		for k in clean smudge; do git config --file .git/later filter.later.$k `+above+`/evil; done`)
	ctx, tree := t.Context(), filepath.Join(above, "tree")
	r.must(r.git.AddWorktree(ctx, r.at, "safe", tree))
	if text, err := os.ReadFile(filepath.Join(tree, "a.txt")); err != nil || string(text) != "one\n" {
		t.Errorf("the worktree has %q, %v", text, err)
	}
	r.sh("tree", "touch -d 2001-01-01 a.txt") // makes git status read the file again
	r.must(r.git.RemoveWorktree(ctx, r.at, tree, orchestrator.KeepChanges))
	changes := r.changesOf("echo x > c.md; echo x > d.go")
	_, err := r.open().Commit(ctx, changes, "c")
	r.must(err)
	if got := r.sh("app", "git -c core.fsmonitor=false show --name-status --format= --no-textconv"); got != "A\tc.md\nA\td.go\n" {
		t.Errorf("the commit has %q", got)
	}
	if ran, err := os.ReadFile(filepath.Join(above, "ran")); err == nil {
		t.Errorf("programs of the repository ran:\n%s", ran)
	}
	// Check the canary: git does run these programs if the user runs it.
	if r.sh("app", "git worktree add -q ../other safe; touch c.md; git add --renormalize c.md"); canaryMissing(filepath.Join(above, "ran")) {
		t.Error("nothing would have run anyway")
	}
	ran := r.sh("", "cat ran")
	t.Log(strings.Count(ran, "evil"), "programs run where git is not held back")
}

// A repository cannot hold up ductor with a pipe in place of a file that Git reads. Without a writer, Git would wait
// until the time limit of each command.
func TestAttackAPipeInPlaceOfAFileOfGit(t *testing.T) {
	for _, plant := range []string{
		"rm .git/info/exclude; mkfifo .git/info/exclude",
		"mkfifo .git/pipe; git config core.excludesFile .git/pipe",
		"mkfifo ../pipe; git config core.excludesFile $PWD/../pipe",
		"mkdir -p x/y; mkfifo x/y/.gitignore",
		"rm .gitignore; mkfifo .gitignore",
	} {
		r := newRepo(t)
		repo := r.open()
		r.sh("app", "touch .gitignore; "+plant)
		if _, err := repo.Snapshot(t.Context(), git.BeforeTurn); !namesPipe(err) {
			t.Errorf("%s: the snapshot gives %v", plant, err)
		}
	}
	for _, plant := range []string{
		"mkfifo .git/pipe; git config core.attributesFile $PWD/.git/pipe", "mkfifo .gitattributes",
		"mkfifo .git/info/attributes",
	} {
		r := newRepo(t)
		changes := r.changesOf("echo x > new")
		r.sh("app", plant)
		if _, err := r.open().Commit(t.Context(), changes, "x"); !namesPipe(err) {
			t.Errorf("%s: the commit gives %v", plant, err)
		}
	}
}

// namesPipe reports whether err is an orchestrator.ErrBlocking that ends with the path of a pipe.
func namesPipe(err error) bool {
	if !errors.Is(err, orchestrator.ErrBlocking) {
		return false
	}
	text := err.Error()
	info, err := os.Stat(text[strings.LastIndex(text, ": ")+2:])
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}
