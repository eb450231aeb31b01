package git_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/git"
	"ductor/orchestrator"
)

// A nested repository has settings of its own. It runs nothing: not when a snapshot finds it again, and not when a turn
// around it is undone or committed.
func TestNoProgramOfANestedRepositoryRuns(t *testing.T) {
	r := newRepo(t)
	ran := r.plantEvil()
	r.sh("app", `git init -q lib; cd lib; git config user.name A; git config user.email a@b; echo '* filter=mine' > .gitattributes; echo x > x
		git add .; git commit -qm x; git config filter.mine.clean ../../evil; git config filter.mine.smudge ../../evil
		cp -r . ../sub; cd ..; git -c protocol.file.allow=always submodule add -q ./sub sub 2>/dev/null || git add sub; echo 'kept/' >> .gitignore; cp -r lib kept; git add -f kept; git commit -qm nested
		touch -d 2001-01-01 lib/x sub/x kept/x`)
	r.ranNothing(ran)
	repo, ctx := r.open(), t.Context()
	for _, when := range []git.Moment{git.BeforeTurn, git.AfterTurn, git.BeforeTurn} {
		tree, err := repo.Snapshot(ctx, when)
		r.must(err)
		if nested, err := repo.Nested(ctx, tree); err != nil || len(nested) != 2 {
			t.Errorf("the nested repositories are %q, %v", nested, err)
		}
		r.sh("app", "touch -d 2001-01-02 lib/x sub/x kept/x; echo more >> lib/x")
	}
	changes := r.changesOf("echo two > a.txt; cd lib; git -c filter.mine.clean=cat commit -qam more; cd ..; rm -rf sub; rm -r kept; mkdir kept; echo f > kept/f")
	_, err := r.open().Touched(ctx, r.past())
	r.must(err)
	_, err = r.git.Dirty(ctx, r.at)
	r.must(err)
	if err := r.open().Restore(ctx, changes); err != nil {
		t.Log("undo:", err)
	}
	r.sh("app", "echo three > a.txt")
	changes = r.changesOf("echo four > a.txt; echo five > b.txt; cd lib; git -c filter.mine.clean=cat commit -q --allow-empty -m again")
	if _, err := r.open().Commit(ctx, changes, "c"); err != nil {
		t.Errorf("commit: %v", err)
	}
	r.must(r.git.AddWorktree(ctx, r.at, "tree", filepath.Join(filepath.Dir(r.at.Dir), "tree")))
	r.must(r.git.RemoveWorktree(ctx, r.at, filepath.Join(filepath.Dir(r.at.Dir), "tree"), orchestrator.DropChanges))
	r.ranNothing(ran)
	if r.sh("app", "touch -d 2001-01-03 lib/x; git -C lib status"); canaryMissing(ran) {
		t.Error("nothing would have run anyway")
	}
}

// On this host, agents cannot write to the directory that controls snapshots. In a sandbox they can, but its settings
// are listed before each snapshot.
func TestASnapshotRunsNoProgramThatTheTurnPlanted(t *testing.T) {
	for _, in := range []cli.Sandbox{"", "box"} {
		t.Run("in "+string(in), func(t *testing.T) {
			r := newRepo(t)
			ran := r.plantEvil()
			g := git.New(anywhere{clitest.Host(t)}, filepath.Join(filepath.Dir(r.at.Dir), "private"))
			repo, err := g.Open(t.Context(), git.Place{In: in, Dir: r.at.Dir})
			r.must(err)
			_, err = repo.Snapshot(t.Context(), git.BeforeTurn)
			r.must(err)
			if _, err := os.Stat(filepath.Join(r.at.Dir, ".git", "ductor")); (err == nil) != (in == "box") {
				t.Errorf("the directory in the repository: %v", err)
			}
			r.sh("app", `mkdir -p .git/ductor/info; printf '* filter=late\n' > .git/ductor/info/attributes
				git config --file .git/ductor/config filter.late.clean ../evil; echo new > b.txt`)
			_, err = repo.Snapshot(t.Context(), git.AfterTurn)
			r.must(err)
			r.ranNothing(ran)
		})
	}
}

// Undo goes on where a user starts the repository anew, or Git has deleted contents that no commit has.
func TestASnapshotOfARepositoryThatLostItsObjects(t *testing.T) {
	for _, lose := range []string{"rm -rf .git; git init -q -b main", "rm -r .git/objects/??"} {
		r := newRepo(t)
		r.changesOf("echo two > b.txt")
		r.sh("app", lose)
		changes := r.changesOf("echo three > b.txt")
		if len(changes) != 1 || changes[0].Path != "b.txt" {
			t.Errorf("%s: it changed %+v", lose, changes)
		}
		r.must(r.open().Restore(t.Context(), changes))
		if got := r.sh("app", "cat b.txt"); got != "two\n" {
			t.Errorf("%s: the file is %q", lose, got)
		}
	}
}

// Whoever can write to a working tree can make its .git point to any repository.
func TestRepositoriesThatLeadOutside(t *testing.T) {
	r := newRepo(t)
	r.sh("", `git init -q -b main other; cd app; git worktree add -q ../tree; git init -q ../lib; cd ../lib; git config user.name A; git config user.email a@b; git commit -q --allow-empty -m x
		cd ../app; git -c protocol.file.allow=always submodule --quiet add ../lib sub
		ln -s refs/heads/main .git/refs/heads/same; ln -s HEAD .git/logs/same
		git init -q ../common; echo "$PWD/../other/.git" > ../common/.git/commondir
		mkdir ../file ../link ../copy ../inner; echo "gitdir: $PWD/../other/.git" > ../file/.git
		ln -s ../other/.git ../link/.git; cp ../tree/.git ../copy/.git
		echo "gitdir: $PWD/.git/modules/sub" > ../inner/.git
		for part in config packed-refs refs reftable objects logs worktrees index refs/heads objects/ab logs/HEAD \
			logs/refs logs/refs/heads/main; do
			dir=../$(echo $part | tr / -); git init -q $dir; from=$dir/.git/$part; to=$PWD/../other/.git/$part
			rm -rf $from; mkdir -p $(dirname $from) $(dirname $to); ln -s $to $from
		done; cp ../other/.git/config ../other/.git/packed-refs; cp .git/index ../other/.git/index`)
	const list = "find other -type f -exec cksum {} + | sort; find other | sort"
	base, outside := filepath.Dir(r.at.Dir), r.sh("", list)
	for dir, own := range map[string]bool{
		"app": true, "tree": true, "app/sub": true,
		"file": false, "link": false, "copy": false, "inner": false, "common": false, "config": false,
		"packed-refs": false, "refs": false, "reftable": false, "objects": false,
		"logs": false, "worktrees": false, "index": false,
		"refs-heads": false, "objects-ab": false, "logs-HEAD": false, "logs-refs": false,
		"logs-refs-heads-main": false,
	} {
		at := git.Place{Dir: filepath.Join(base, dir)}
		err := r.writeWithin(at)
		if (err == nil) != own || err != nil && !errors.Is(err, orchestrator.ErrOutsideRoot) {
			t.Errorf("%s: written with %v, want written: %v", dir, err, own)
		}
		err = r.git.CheckGitDir(t.Context(), at, below(base))
		single := dir == "index" || strings.Contains(dir, "-") && dir != "packed-refs" && dir != "logs-refs"
		if errors.Is(err, orchestrator.ErrOutsideRoot) != single {
			t.Errorf("%s: worktrees give %v although all is inside", dir, err)
		}
	}
	if d := cmp.Diff(outside, r.sh("", list)); d != "" {
		t.Errorf("files outside changed:\n%s", d)
	}
}

// writeWithin opens a repository and writes to it everything that a turn writes.
func (r *repo) writeWithin(at git.Place) error {
	ctx := r.t.Context()
	repo, err := r.git.OpenWithin(ctx, at, below(at.Dir))
	if err != nil {
		return err
	}
	tree, err := repo.Snapshot(ctx, git.BeforeTurn)
	if err != nil {
		return err
	}
	return repo.Keep(ctx, "turns/1/before", tree)
}

// below lets conversations work in a directory and below it.
func below(root string) git.DirectoryFunc {
	return func(path string) (string, error) {
		real, err := filepath.EvalSymlinks(path)
		if err == nil && !cli.Lies(real, root) {
			err = orchestrator.ErrOutsideRoot
		}
		return real, err
	}
}

// planter is an agent in a sandbox. It writes to the repository of a user: before each command of Git, except those
// about settings, it names another program as a filter. It hides the filter from check-attr.
type planter struct {
	cli.Launcher
	r *repo
	n int
}

func (p *planter) Start(ctx context.Context, c cli.Command) (cli.Process, error) {
	switch {
	case slices.Contains(c.Args, "check-attr"):
		p.r.sh("app", "rm -f .gitattributes .git/info/attributes")
	case !slices.Contains(c.Args, "config"):
		p.n++
		p.r.sh("app", fmt.Sprintf(`git config filter.f%d.clean ../evil; git config filter.f%d.smudge ../evil
			mkdir -p .git/info; echo '* filter=f%d' > .git/info/attributes
			cp .git/info/attributes .gitattributes`, p.n, p.n, p.n))
	}
	return p.Launcher.Start(ctx, c)
}

func TestNoProgramRunsThatIsNamedBetweenTwoCommands(t *testing.T) {
	r := newRepo(t)
	ran := r.plantEvil()
	changes := r.changesOf("echo two > a.txt; echo b > b.txt")
	base := filepath.Dir(r.at.Dir)
	r.git = git.New(host{&planter{Launcher: clitest.Host(t), r: r}}, filepath.Join(base, "private"))
	ctx, tree := t.Context(), filepath.Join(base, "tree")
	r.must(r.git.AddWorktree(ctx, r.at, "new", tree))
	if got := r.sh("tree", "cat a.txt"); got != "one\n" {
		t.Errorf("the worktree has %q", got)
	}
	r.sh("tree", "touch -d 2001-01-01 a.txt")
	if dirty, err := r.git.Dirty(ctx, git.Place{Dir: tree}); err != nil || dirty {
		t.Errorf("an untouched worktree is dirty: %v, %v", dirty, err)
	}
	r.must(r.git.RemoveWorktree(ctx, r.at, tree, orchestrator.KeepChanges))
	_, err := r.open().Commit(ctx, changes, "c")
	r.must(err)
	r.ranNothing(ran)
	if r.sh("app", "git add -A"); canaryMissing(ran) {
		t.Error("nothing would have run anyway")
	}
}

// The settings of a repository name the author and committer of a commit, but nothing in the logs of refs.
func TestTheNameInLogsIsNotOfTheRepository(t *testing.T) {
	r := newRepo(t)
	r.sh("app", "git config user.name 'x; evil #'")
	changes := r.changesOf("echo two > a.txt")
	_, err := r.open().Commit(t.Context(), changes, "c")
	r.must(err)
	r.must(r.git.AddWorktree(t.Context(), r.at, "new", filepath.Join(filepath.Dir(r.at.Dir), "new")))
	got := r.sh("app", "git log -1 --format='%an, %cn'; cat .git/logs/refs/heads/new; tail -n 1 .git/logs/HEAD")
	if !strings.HasPrefix(got, "x; evil #, x; evil #\n") || strings.Count(got, "evil") != 2 {
		t.Errorf("the log is %q", got)
	}
}

// ductor checks out and commits files like Git: with modes, links, line breaks and submodules.
func TestConversionsAreThoseOfTheRepository(t *testing.T) {
	r := newRepo(t)
	r.sh("app", `printf '*.txt text\n*.bin -text\n*.win text eol=crlf\n' > .gitattributes; ln -s a.txt link
		echo '#!' > run; chmod +x run; printf 'a\r\n' | tee c.bin > d.win; printf 'a\n' > e.lf
		mkdir sub out; echo s > sub/s; echo o > out/o
		git init -q lib; (cd lib; git config user.name A; git config user.email a@b; git commit -q --allow-empty -m l)
		git add -A 2>/dev/null; git commit -qm more; git config core.autocrlf true; echo 'x/' > .git/info/exclude
		printf '*.raw -text\n*.lf text eol=lf\n' > .git/info/attributes`)
	base := filepath.Dir(r.at.Dir)
	r.must(r.git.AddWorktree(t.Context(), r.at, "ours", filepath.Join(base, "ours")))
	r.sh("app", "git worktree add -q ../hers -b hers")
	const all = `git status --porcelain; head -c 99 *.*
		ls -AlR . | grep -v '^total' | sed 's/[A-Z][a-z]* *[0-9]* [0-9:]* / /; s/ours\|hers//g'`
	if ours, theirs := r.sh("ours", all), r.sh("hers", all); ours != theirs || !strings.Contains(ours, "-> a.txt") {
		t.Errorf("the worktree has:\n%s\nand not:\n%s", ours, theirs)
	}
	changes := r.changesOf(`printf 'one\r\ntwo\r\n' > a.txt; printf 'b\r\n' | tee c.bin > e.raw; rm run; rm -r out; echo f > out
		mkdir link2; echo n > link2/n`)
	_, err := r.open().Commit(t.Context(), changes, "c")
	r.must(err)
	if got := r.sh("app", `git show HEAD:a.txt; git show HEAD:c.bin; git show HEAD:e.raw
		git ls-tree -r --name-only HEAD | tr '\n' ' '
		git status --porcelain`); got != "one\ntwo\nb\r\nb\r\n.gitattributes a.txt "+
		"c.bin d.win e.lf e.raw lib link link2/n out sub/s " {
		t.Errorf("committed: %q", got)
	}
	tree := git.Place{Dir: filepath.Join(base, "ours")}
	for _, c := range []struct {
		script string
		dirty  bool
	}{
		{"mkdir x; echo x > x/x", false}, {"echo u > u", true}, {"rm u; rm sub/s", true}, {"git checkout -q .", false},
		{"echo y > run; git add run", true},
	} {
		r.sh("ours", c.script)
		if dirty, err := r.git.Dirty(t.Context(), tree); err != nil || dirty != c.dirty {
			t.Errorf("after %s it is dirty: %v, %v", c.script, dirty, err)
		}
	}
	err = r.git.RemoveWorktree(t.Context(), r.at, tree.Dir, orchestrator.KeepChanges)
	if !errors.Is(err, orchestrator.ErrDirtyWorktree) {
		t.Errorf("a dirty worktree is removed: %v", err)
	}
}

// anywhere starts programs on this host for each sandbox.
type anywhere struct{ launcher cli.Launcher }

func (a anywhere) Launcher(cli.Sandbox) (cli.Launcher, error) { return a.launcher, nil }

// plantEvil writes a program beside the repository, and returns the file that exists once the program has run.
func (r *repo) plantEvil() (ran string) {
	r.t.Helper()
	ran = filepath.Join(filepath.Dir(r.at.Dir), "ran")
	r.sh("", `printf '#!/bin/sh\necho "$0 in $PWD" >> `+ran+`\ncat\n' > evil; chmod +x evil`)
	return ran
}

func (r *repo) ranNothing(ran string) {
	r.t.Helper()
	if what, err := os.ReadFile(ran); err == nil {
		r.t.Errorf("programs of a repository ran:\n%s", what)
	}
}

func (r *repo) past() (at time.Time) { return time.Now().Add(-time.Hour) }

// A command removes its directory. The directory of a killed command does not disturb the next one.
func TestNoCommandDependsOnALeftoverDirectory(t *testing.T) {
	r := newRepo(t)
	r.sh("", "mkdir -p private/neutral-sha1; touch private/neutral-sha1/config.lock")
	tree := filepath.Join(filepath.Dir(r.at.Dir), "tree")
	r.must(r.git.AddWorktree(t.Context(), r.at, "new", tree))
	results := make(chan error)
	for range 4 {
		go func() {
			_, err := r.git.Dirty(t.Context(), git.Place{Dir: tree})
			results <- err
		}()
	}
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if got := r.sh("", "ls private"); got != "neutral-sha1\n" {
		t.Errorf("left behind: %s", got)
	}
}

// swapper is an agent in a sandbox. Before a command that adds a worktree, it replaces the worktree,
// or its index, by a link to a place outside of the sandbox.
type swapper struct {
	cli.Launcher
	before string
	swap   func()
}

func (s *swapper) Start(ctx context.Context, c cli.Command) (cli.Process, error) {
	if slices.Contains(c.Args, s.before) && s.swap != nil {
		swap := s.swap
		s.swap = nil
		swap()
	}
	return s.Launcher.Start(ctx, c)
}

// ductor does not write the files of a branch elsewhere if an agent replaces the new worktree by a link.
func TestAWorktreeThatBecomesALinkWhileItIsAdded(t *testing.T) {
	for _, before := range []string{"--get-regexp", "HEAD^{tree}", "read-tree", "update-index"} {
		t.Run(before, func(t *testing.T) {
			r := newRepo(t)
			r.sh("", "mkdir outside")
			base := filepath.Dir(r.at.Dir)
			s := &swapper{Launcher: clitest.Host(t), before: before}
			s.swap = func() { r.sh("app", "mv .worktrees/x ../moved; ln -s ../../outside .worktrees/x") }
			r.git = git.New(host{s}, filepath.Join(base, "private"))
			err := r.git.AddWorktree(t.Context(), r.at, "x", filepath.Join(r.at.Dir, ".worktrees", "x"))
			if s.swap != nil {
				t.Fatal("the worktree was not replaced")
			}
			if err == nil && before != "update-index" {
				t.Error("it was added")
			}
			if got := r.sh("", "ls -A outside private"); got != "outside:\n\nprivate:\n" {
				t.Errorf("there are: %s", got)
			}
		})
	}
}

// stepper is an agent in a sandbox that acts before the given command of Git, counted from zero.
type stepper struct {
	cli.Launcher
	left int
	act  func()
}

func (s *stepper) Start(ctx context.Context, c cli.Command) (cli.Process, error) {
	if s.left == 0 {
		s.act()
	}
	s.left--
	return s.Launcher.Start(ctx, c)
}

// ductor deletes nothing outside of a repository if an agent replaces a directory by a link before any of the commands
// that remove a worktree. The link leads to a copy, so that the names of all files are the same there.
func TestAWorktreeThatBecomesALinkWhileItIsRemoved(t *testing.T) {
	const copies = `mkdir outside; cp -r app/.worktrees app/.git/worktrees outside; cp -r app/.git outside/repo
		echo mine > outside/.worktrees/x/a.txt; find outside | sort > listed; mkdir moved; `
	for what, swap := range map[string]string{
		"the worktree":      "mv app/.worktrees/x moved; ln -s ../../outside/.worktrees/x app/.worktrees/x",
		"its parent":        "mv app/.worktrees moved; ln -s ../outside/.worktrees app/.worktrees",
		"the entry":         "mv app/.git/worktrees/x moved; ln -s ../../../outside/worktrees/x app/.git/worktrees/x",
		"the entries":       "mv app/.git/worktrees moved; ln -s ../../outside/worktrees app/.git/worktrees",
		"the git directory": "mv app/.git moved; ln -s ../outside/repo app/.git",
	} {
		t.Run(what, func(t *testing.T) {
			for step := 0; ; step++ {
				r := newRepo(t)
				base := filepath.Dir(r.at.Dir)
				tree := filepath.Join(r.at.Dir, ".worktrees", "x")
				r.sh("app", "echo .worktrees > .git/info/exclude; git worktree add -q .worktrees/x")
				r.sh("", copies)
				swapped := false
				act := func() { swapped = true; r.sh("", swap) }
				r.git = git.New(host{&stepper{clitest.Host(t), step, act}}, filepath.Join(base, "private"))
				err := r.git.RemoveWorktree(t.Context(), r.at, tree, orchestrator.DropChanges)
				if !swapped {
					r.must(err)
					r.sh("app", "test ! -e .worktrees/x -a ! -e .git/worktrees/x")
					return
				}
				r.sh("", "find outside | sort | diff listed -; grep -q mine outside/.worktrees/x/a.txt")
			}
		})
	}
}

// A worktree is removed although its directory is missing or only its entry is left, but not if it is locked or has
// submodules, and not if the repository does not know it.
func TestWorktreesThatGitWouldNotRemove(t *testing.T) {
	r := newRepo(t)
	r.sh("app", `for x in locked sub gone bare moved; do git worktree add -q ../$x; done; git worktree lock ../locked
		git init -q ../lib; git -C ../lib -c user.name=A -c user.email=a@b commit -q --allow-empty -m l
		cd ../sub; cp -r ../lib lib; git add lib 2>/dev/null; git commit -qm sub; rm -r ../gone ../bare/.git
		mv ../moved ../else; mkdir ../moved; echo "gitdir: $PWD" > ../moved/.git; echo mine > ../moved/mine`)
	dir := func(name string) string { return filepath.Join(filepath.Dir(r.at.Dir), name) }
	for _, name := range []string{"locked", "moved", "lib", "app"} {
		if err := r.git.RemoveWorktree(t.Context(), r.at, dir(name), orchestrator.DropChanges); err == nil {
			t.Errorf("%s was removed", name)
		}
	}
	err := r.git.RemoveWorktree(t.Context(), r.at, dir("sub"), orchestrator.KeepChanges)
	if !errors.Is(err, orchestrator.ErrDirtyWorktree) {
		t.Errorf("a worktree with submodules: %v", err)
	}
	for _, name := range []string{"sub", "gone", "bare"} {
		r.must(r.git.RemoveWorktree(t.Context(), r.at, dir(name), orchestrator.DropChanges))
	}
	got := r.sh("", "cat moved/mine bare/a.txt locked/a.txt lib/.git/HEAD app/a.txt; ls app/.git/worktrees")
	want := "mine\none\none\nref: refs/heads/" // followed by the name of a branch
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "one\nlocked\nmoved\n") {
		t.Errorf("left are %q", got)
	}
	r.sh("", "test ! -e sub -a ! -e gone")
}

// While a program writes into a worktree, ductor may be unable to remove the worktree. It can do so later: the worktree
// still has its file .git. The program must write at the right moment, so the test repeats the removal until it does.
// Such a moment is likely while ductor deletes many other files.
func TestAWorktreeThatIsStillInUse(t *testing.T) {
	r := newRepo(t)
	base := filepath.Dir(r.at.Dir)
	for tries := 1; ; tries++ {
		tree := filepath.Join(base, "busy")
		r.sh("app", "git worktree add -q --detach ../busy; mkdir ../busy/z; cd ../busy/z; seq 3000 | xargs touch")
		err := r.removeWhileInUse(tree)
		if err != nil && strings.HasSuffix(err.Error(), "is still in use") {
			r.must(r.git.RemoveWorktree(t.Context(), r.at, tree, orchestrator.DropChanges))
			r.sh("", "test ! -e busy -a ! -e app/.git/worktrees/busy")
			return
		}
		if tries == 200 {
			t.Fatalf("the last error is %v", err)
		}
		r.sh("", "rm -rf busy; git -C app worktree prune")
	}
}

// removeWhileInUse removes a worktree into which something writes until the removal has ended.
func (r *repo) removeWhileInUse(tree string) error {
	removed, stopped := make(chan struct{}), make(chan struct{})
	defer func() { close(removed); <-stopped }()
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-removed:
				return
			default:
				_ = os.WriteFile(filepath.Join(tree, strconv.Itoa(i%100)), nil, 0o600) // the directory may be gone
			}
		}
	}()
	return r.git.RemoveWorktree(r.t.Context(), r.at, tree, orchestrator.DropChanges)
}

// An agent cannot make ductor replace a file by the index of a new worktree.
func TestAnIndexThatBecomesALinkWhileAWorktreeIsAdded(t *testing.T) {
	r := newRepo(t)
	base := filepath.Dir(r.at.Dir)
	s := &swapper{Launcher: clitest.Host(t), before: "update-index"}
	s.swap = func() { r.sh("", "echo mine > victim; ln -s ../../../../victim app/.git/worktrees/x/index") }
	r.git = git.New(host{s}, filepath.Join(base, "private"))
	if err := r.git.AddWorktree(t.Context(), r.at, "x", filepath.Join(base, "x")); err == nil || s.swap != nil {
		t.Errorf("it was added: %v", err)
	}
	if got := r.sh("", "cat victim; ls -A private"); got != "mine\n" {
		t.Errorf("the file is %q", got)
	}
}

// A worktree of a sparse repository is sparse too. Git cannot even read the other files of a partial clone.
func TestAWorktreeOfASparseRepository(t *testing.T) {
	r := newRepo(t)
	r.sh("app", `mkdir in out; echo i > in/i; echo o > out/o; git add .; git commit -qm more
		git config uploadpack.allowFilter true
		git clone -q --filter=blob:none --sparse "file://$PWD" ../part; cd ../part; git sparse-checkout set in
		git remote remove origin`)
	base := filepath.Dir(r.at.Dir)
	tree := git.Place{Dir: filepath.Join(base, "tree")}
	r.must(r.git.AddWorktree(t.Context(), git.Place{Dir: filepath.Join(base, "part")}, "x", tree.Dir))
	if got := r.sh("tree", "ls *; git status --porcelain"); got != "a.txt\n\nin:\ni\n" {
		t.Errorf("it has %q", got)
	}
	if dirty, err := r.git.Dirty(t.Context(), tree); err != nil || dirty {
		t.Errorf("it is dirty: %v, %v", dirty, err)
	}
}
