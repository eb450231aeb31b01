package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ductor/git"
	"ductor/orchestrator"
)

// state returns the working tree's files with their modes and contents, ignored ones too, and git's own view of it.
func (r *repo) state() map[string]string {
	r.t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(r.at.Dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(r.at.Dir, path)
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			content, err = os.Readlink(path)
		} else {
			var data []byte
			data, err = os.ReadFile(path)
			content = string(data)
		}
		seen[name] = fmt.Sprintf("%v %q", info.Mode(), content)
		return err
	})
	r.must(err)
	index, err := os.ReadFile(filepath.Join(r.at.Dir, ".git/index"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	seen["the index"] = string(index)
	seen["what git says"] = r.sh("app", "git stash list; cat .git/HEAD; git for-each-ref refs/heads refs/tags refs/stash; GIT_OPTIONAL_LOCKS=0 git status --porcelain 2>/dev/null")
	return seen
}

func (r *repo) open() *git.Repo {
	r.t.Helper()
	repo, err := r.git.Open(r.t.Context(), r.at)
	r.must(err)
	return repo
}

// changesOf takes snapshots around a script, as a turn does, and returns its changes.
func (r *repo) changesOf(script string) []git.Change {
	r.t.Helper()
	repo, ctx := r.open(), r.t.Context()
	before, err := repo.Snapshot(ctx, git.BeforeTurn)
	r.must(err)
	r.sh("app", script)
	after, err := repo.Snapshot(ctx, git.AfterTurn)
	r.must(err)
	changes, err := repo.Changes(ctx, before, after)
	r.must(err)
	return changes
}

// reverse returns the changes that undo the undoing of changes.
func reverse(changes []git.Change) (back []git.Change) {
	for _, c := range changes {
		back = append(back, git.Change{Path: c.Path, Old: c.New, New: c.Old})
	}
	return back
}

// everyKindOfFile creates every kind of file, an index that differs from HEAD and the working tree, a stash and a
// conflicting merge.
const everyKindOfFile = `
	mkdir -p dir/deep build; echo two > dir/deep/two.txt; printf 'a\000b' > data.bin; printf '#!/bin/sh\n' > run.sh; chmod +x run.sh; ln -s a.txt link; ln -s nowhere dangling
	printf 'one\r\ntwo\n' > mixed.txt; printf '$Id$\n' > ident.txt; echo large > big.lfs; echo forced > forced.log
	printf '*.log\nbuild/\n' > .gitignore; printf '* text=auto\n*.txt text eol=crlf ident\n*.lfs filter=lfs\n' > .gitattributes
	git config filter.lfs.clean false; git config filter.lfs.smudge false; git config core.autocrlf true; git config core.fileMode false
	git -c filter.lfs.clean=cat add -A 2>/dev/null; git -c filter.lfs.clean=cat add -f forced.log; git commit -qm crowd
	printf 'one\r\ntwo\n' > mixed.txt
	git init -q sub; (cd sub; git config user.name A; git config user.email a@b; echo s > s.txt; git add .; git commit -qm s); git init -q unborn; echo u > unborn/u
	echo stashed > a.txt; git stash -q; echo staged > a.txt; git add a.txt; echo worked >> a.txt; echo new > new.txt; git add -N new.txt; git rm -q --cached dir/deep/two.txt
	echo untracked > un\ tracked.txt; echo é > 'é"	x'; echo obj > build/obj; echo log > x.log; mkdir 'glob*'; echo g > 'glob*/[a]'`

// Undo restores a turn that touched every kind of file exactly, and so does undoing the undo: contents, modes, links
// and the index, byte by byte.
func TestUndoRestoresTheExactTree(t *testing.T) {
	r := newRepo(t)
	r.sh("app", everyKindOfFile)
	before := r.state()
	changes := r.changesOf(`echo x >> a.txt; rm dir/deep/two.txt; mv data.bin moved.bin; chmod -x run.sh; chmod +x ident.txt; rm link; ln -s run.sh link; rm dangling; echo file > dangling
		printf 'one\ntwo\r\n' > mixed.txt; echo changed > big.lfs; echo more >> forced.log; rm 'un tracked.txt'; echo e > 'é"	x'; echo deep > dir/deeper; mkdir -p made/by/turn; echo m > made/by/turn/m
		rm ident.txt; mkdir ident.txt; echo in > ident.txt/in; rm -r 'glob*'; echo g > 'glob*'; echo fresh > new.txt; : > empty`)
	after := r.state()
	if len(changes) < 18 {
		t.Errorf("only %d changes: %+v", len(changes), changes)
	}
	repo, ctx := r.open(), t.Context()
	for range 2 {
		r.must(repo.Restore(ctx, changes))
		if d := cmp.Diff(before, r.state()); d != "" {
			t.Fatalf("undone, it differs:\n%s", d)
		}
		r.must(repo.Restore(ctx, changes)) // a second time: changes nothing
		if d := cmp.Diff(before, r.state()); d != "" {
			t.Fatalf("undone twice, it differs:\n%s", d)
		}
		r.must(repo.Restore(ctx, reverse(changes)))
		if d := cmp.Diff(after, r.state()); d != "" {
			t.Fatalf("done again, it differs:\n%s", d)
		}
	}
}

// Undo does not overwrite later changes: it names the files and changes nothing. Later changes in other files stay,
// too.
func TestUndoRefusesWhatChangedSince(t *testing.T) {
	r := newRepo(t)
	r.sh("app", `echo b > b.txt; echo '*.o' > .gitignore`)
	changes := r.changesOf(`echo x > a.txt; echo y > c.txt; rm b.txt`)
	r.sh("app", `echo mine > a.txt; echo other > other.txt`)
	before, repo := r.state(), r.open()
	var differs *git.Differs
	if err := repo.Restore(t.Context(), changes); !errors.As(err, &differs) || fmt.Sprint(differs.Paths) != "[a.txt]" {
		t.Errorf("a file that changed: %v", err)
	}
	r.sh("app", `mkdir b.txt; echo o > b.txt/x.o; echo x > a.txt`)
	if err := repo.Restore(t.Context(), changes); !errors.Is(err, git.ErrInTheWay) {
		t.Errorf("an ignored file in the way: %v", err)
	}
	r.sh("app", `rm -r b.txt; echo mine > a.txt`)
	if d := cmp.Diff(before, r.state()); d != "" {
		t.Errorf("a refusal changed files:\n%s", d)
	}
	r.sh("app", `echo x > a.txt`)
	r.must(repo.Restore(t.Context(), changes))
	if got := r.sh("app", `cat a.txt b.txt other.txt; ls`); got != "one\nb\nother\na.txt\nb.txt\nother.txt\n" {
		t.Errorf("the files are %q", got)
	}
}

// Snapshots need no commit, survive git gc, and appear in no list of branches, tags or changes.
func TestSnapshotsOfARepositoryWithoutCommits(t *testing.T) {
	r := newRepo(t)
	r.sh("app", `rm -rf .git; git init -q -b main; echo staged > s; git add s`)
	before, ctx := r.state(), t.Context()
	repo := r.open()
	tree, err := repo.Snapshot(ctx, git.BeforeTurn)
	r.must(err)
	r.must(repo.Keep(ctx, "turns/1", tree))
	if d := cmp.Diff(before, r.state()); d != "" {
		t.Errorf("a snapshot changed something:\n%s", d)
	}
	r.sh("app", `git gc -q --prune=now; echo x > s; rm a.txt; git branch -a; test -z "$(git log --all 2>&1 | grep -v fatal)"`)
	kept, err := repo.Kept(ctx, "turns/1")
	if err != nil || kept != tree {
		t.Errorf("it keeps %q, %v", kept, err)
	}
	after, err := repo.Snapshot(ctx, git.AfterTurn)
	r.must(err)
	changes, err := repo.Changes(ctx, kept, after)
	r.must(err)
	r.must(repo.Restore(ctx, changes))
	if d := cmp.Diff(before, r.state()); d != "" {
		t.Errorf("undone, it differs:\n%s", d)
	}
	r.must(repo.Forget(ctx, "turns/1", "turns/2"))
	if kept, err := repo.Kept(ctx, "turns/1"); err != nil || kept != "" {
		t.Errorf("it still keeps %q, %v", kept, err)
	}
	r.sh("", "mkdir none")
	if _, err := r.git.Open(ctx, git.Place{Dir: filepath.Join(filepath.Dir(r.at.Dir), "none")}); !errors.Is(err, orchestrator.ErrNoRepository) {
		t.Errorf("no repository: %v", err)
	}
}

// A repository may use SHA-256 for the IDs of its objects.
func TestARepositoryWithLongIDs(t *testing.T) {
	r := newRepo(t)
	r.sh("app", `rm -rf .git; git init -q -b main --object-format=sha256
		git config user.name A; git config user.email a@b; git add .; git commit -qm one`)
	before := r.state()
	changes := r.changesOf("echo two > a.txt; echo b > b.txt")
	r.must(r.open().Restore(t.Context(), changes))
	if d := cmp.Diff(before, r.state()); d != "" {
		t.Errorf("undone, it differs:\n%s", d)
	}
	r.must(r.open().Restore(t.Context(), reverse(changes)))
	_, err := r.open().Commit(t.Context(), changes, "two")
	r.must(err)
	if got := r.sh("app", "git status --porcelain; git show HEAD:a.txt"); got != "two\n" {
		t.Errorf("committed: %q", got)
	}
}

// If a turn makes git ignore a file, the snapshot after the turn still includes it. The snapshot before the next turn
// does not.
func TestIgnoredFilesAreLeftAlone(t *testing.T) {
	r := newRepo(t)
	r.sh("app", `echo keep > keep.txt; echo '*.log' > .gitignore; echo l > x.log`)
	changes := r.changesOf(`echo changed > keep.txt; printf 'keep.txt\n*.log\n' > .gitignore; echo changed > x.log`)
	names := ""
	for _, c := range changes {
		names += c.Path + " "
	}
	if names != ".gitignore keep.txt " {
		t.Errorf("it changed %s", names)
	}
	r.must(r.open().Restore(t.Context(), changes))
	if got := r.sh("app", "cat keep.txt x.log"); got != "keep\nchanged\n" {
		t.Errorf("the files are %q", got)
	}
	changes = r.changesOf("rm .gitignore; echo mine > mine.txt")
	r.must(r.open().Restore(t.Context(), changes))
	if got := r.sh("app", "cat x.log; ls"); got != "changed\na.txt\nkeep.txt\nx.log\n" {
		t.Errorf("a turn without .gitignore is undone: %q", got)
	}
	r.changesOf("printf 'keep.txt\n' > .gitignore")
	if changes := r.changesOf("echo again > keep.txt"); len(changes) != 0 {
		t.Errorf("an ignored file changed: %+v", changes)
	}
}

// A snapshot contains a tracked file although Git ignores it. It succeeds whatever is now in place of such a file or of
// its directory, and a turn that puts something else there can be undone.
func TestATrackedFileThatIsIgnoredAndReplaced(t *testing.T) {
	const repository = "git init -q %s; git -C %[1]s -c user.name=A -c user.email=a@b commit -q --allow-empty -m n"
	for name, script := range map[string]string{
		"a directory":          "rm x.log; mkdir x.log; echo in > x.log/in",
		"a link":               "rm x.log; ln -s a.txt x.log",
		"a repository":         "rm x.log; " + fmt.Sprintf(repository, "x.log"),
		"an empty repository":  "rm x.log; git init -q x.log",
		"nothing":              "rm x.log",
		"a parent that's file": "rm -r d; echo d > d",
		"a parent that's link": "rm -r d; ln -s e d",
		"a conflict": `printf "100644 $(git hash-object x.log) 2\tx.log\n" |
			git update-index --index-info`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.sh("app", `mkdir d e; echo one > x.log; echo two | tee d/y.log > e/y.log; echo '*.log' > .gitignore
				git add -A; git add -f x.log d/y.log e/y.log; git commit -qm ignored`)
			before := r.state()
			changes := r.changesOf(script)
			after := r.state()
			restored := r.open().Restore(t.Context(), changes)
			if inTheWay := name == "a directory" || strings.Contains(name, "repository"); inTheWay {
				if d := cmp.Diff(after, r.state()); restored == nil || d != "" {
					t.Errorf("ignored files are in the way: %v\n%s", restored, d)
				}
			} else {
				r.must(restored)
				if d := cmp.Diff(before, r.state()); d != "" && name != "a conflict" {
					t.Errorf("undone, it differs:\n%s", d)
				}
				r.must(r.open().Restore(t.Context(), reverse(changes)))
			}
			// The turn after it starts from what the first one left.
			changes = r.changesOf("echo three > a.txt; rm -rf d; mkdir d; echo new > d/new")
			r.must(r.open().Restore(t.Context(), changes))
			if d := cmp.Diff(after, r.state()); d != "" {
				t.Errorf("the next turn is undone, and it differs:\n%s", d)
			}
		})
	}
}

// A lock that a killed process left does not block later snapshots.
func TestALeftoverLockIsRemoved(t *testing.T) {
	r := newRepo(t)
	r.changesOf("true")
	r.sh("app", "for d in ../private/*; do touch $d/index.lock; done")
	if changes := r.changesOf("echo x > a.txt"); len(changes) != 1 || changes[0].Added != 1 || changes[0].Removed != 1 {
		t.Errorf("it changed %+v", changes)
	}
}

// Whatever users and turns do to files, in any order: undoing a turn restores exactly the state before it.
func TestAnyTurnIsUndoneExactly(t *testing.T) {
	r := newRepo(t)
	names := []string{"a", "b", "d/a", "d/e/b", "x.log", "s p"}
	rapid.Check(t, func(t *rapid.T) {
		edits := func(label string) string {
			script := ":"
			for range rapid.IntRange(0, 4).Draw(t, label) {
				name := "'" + rapid.SampledFrom(names).Draw(t, "name") + "'"
				script += "\n" + strings.NewReplacer("NAME", name, "N", fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "text"))).Replace(rapid.SampledFrom([]string{
					`rm -rf NAME; mkdir -p "$(dirname NAME)"; echo N > NAME`, `rm -rf NAME`, `rm -rf NAME; mkdir -p "$(dirname NAME)"; ln -s N NAME`, `test -L NAME || chmod +x NAME 2>/dev/null || :`,
					`git add NAME 2>/dev/null || :`, `git commit -qm N NAME >/dev/null 2>&1 || :`, `rm -rf NAME; mkdir -p NAME; printf 'a\r\nN' > NAME/in`, `rm -rf d; echo d > d`, `echo 'x.log' > .gitignore`,
				}).Draw(t, "edit"))
			}
			return strings.ReplaceAll(script, "mkdir -p", "rm -f d 2>/dev/null || :; mkdir -p")
		}
		r.sh("app", edits("by the user"))
		before := r.state()
		change := edits("by the agent")
		changes := r.changesOf(change)
		index := r.state()["the index"]
		if err := r.open().Restore(r.t.Context(), changes); err != nil {
			if errors.Is(err, git.ErrInTheWay) {
				t.Skip()
			}
			t.Fatal(err)
		}
		after := r.state()
		if after["the index"] != index {
			t.Error("undoing changed the index")
		}
		for _, seen := range []map[string]string{before, after} {
			delete(seen, "the index")
			delete(seen, "what git says") // the agent may have committed
			if strings.Contains(seen[".gitignore"], "x.log") || strings.Contains(change, ".gitignore") {
				delete(seen, "x.log")
				delete(seen, "x.log/in")
			}
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("undone, it differs:\n%s", d)
		}
	})
}
