package git_test

import (
	"errors"
	"strings"
	"testing"

	"ductor/git"
)

// A commit contains the turn's changes and nothing else, uses the user's name, and runs no hooks. Files that the user
// staged beforehand stay staged.
func TestCommitsHaveOnlyTheChangesOfATurn(t *testing.T) {
	r := newRepo(t)
	r.sh("app", `echo b > b.txt; echo c > c.txt; echo 'c.txt text eol=crlf' > .gitattributes; git add .; git commit -qm more; echo gone > gone.txt
		for h in pre-commit commit-msg post-commit reference-transaction; do printf '#!/bin/sh\ntouch ran; exit 1\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done
		echo staged > s.txt; git add s.txt; echo mine >> b.txt; echo work > w.txt`)
	changes := r.changesOf(`echo x > a.txt; printf 'c\r\nd\r\n' > c.txt; echo n > "new file.txt"; rm gone.txt`)
	id, err := r.open().Commit(t.Context(), changes, "Change things\n\nAnd say why.")
	r.must(err)
	got := r.sh("app", `git rev-parse HEAD; git log -1 --format='%an %ae|%B'; git show --name-status --format=; git status --porcelain; ls ran 2>/dev/null || true`)
	want := id + "\nAnn ann@example.com|Change things\n\nAnd say why.\n\nM\ta.txt\nM\tc.txt\nA\tnew file.txt\n M b.txt\nA  s.txt\n?? w.txt\n"
	if got != want {
		t.Errorf("it is\n%s\nand should be\n%s", got, want)
	}
	if _, err := r.open().Commit(t.Context(), changes, "again"); !errors.Is(err, git.ErrNothing) {
		t.Errorf("once more: %v", err)
	}
}

// Commit rejects changes that must not be committed, names the reason, and leaves HEAD and the index alone.
func TestCommitsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		want                error
	}{
		{"a filter", `echo '*.txt filter=lfs' > .gitattributes; git config filter.lfs.clean cat`, "", git.ErrFilter},
		{"no name", `git config --unset user.name; git config --unset user.email; git config user.useConfigOnly true`, "", git.ErrNoIdentity},
		{"a merge", "", `git rev-parse HEAD > .git/MERGE_HEAD`, git.ErrMerging},
		{"another change", "", `echo y > a.txt`, &git.Differs{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepo(t)
			r.sh("app", "true;"+c.before)
			changes := r.changesOf(`echo x > a.txt`)
			r.sh("app", "true;"+c.after)
			before := r.state()
			_, err := r.open().Commit(t.Context(), changes, "no")
			var differs *git.Differs
			if !errors.Is(err, c.want) && !(errors.As(c.want, &differs) && errors.As(err, &differs)) {
				t.Errorf("it gives %v", err)
			}
			if r.state()["the index"] != before["the index"] || strings.Contains(r.sh("app", "git log --format=%s"), "no") {
				t.Error("something changed")
			}
		})
	}
}

// The first commit of a repository can be a turn's.
func TestTheFirstCommit(t *testing.T) {
	r := newRepo(t)
	r.sh("app", `rm -rf .git a.txt; git init -q -b main; git config user.name Ann; git config user.email a@b; echo s > s; git add s`)
	changes := r.changesOf("echo x > a.txt")
	_, err := r.open().Commit(t.Context(), changes, "First")
	r.must(err)
	if got := r.sh("app", `git log --format=%s; git show --name-status --format=; git status --porcelain`); got != "First\nA\ta.txt\nA  s\n" {
		t.Errorf("it is %q", got)
	}
}
