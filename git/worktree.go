package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"ductor/orchestrator"
)

// Worktrees lists the worktrees of the repository to which a directory belongs. The first is the main one.
func (g *Git) Worktrees(ctx context.Context, at Place) ([]orchestrator.Worktree, error) {
	out, err := g.Run(ctx, at, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	var all []orchestrator.Worktree
	for line := range strings.SplitSeq(out, "\x00") {
		key, value, _ := strings.Cut(line, " ")
		if key == "worktree" {
			all = append(all, orchestrator.Worktree{Dir: value, Main: len(all) == 0})
			continue
		}
		if len(all) == 0 {
			continue
		}
		switch now := &all[len(all)-1]; key {
		case "branch":
			now.Branch = strings.TrimPrefix(value, "refs/heads/")
		case "prunable":
			now.Gone = true
		}
	}
	if len(all) < 2 {
		return all, nil
	}
	merged, err := g.Run(ctx, Place{at.In, all[0].Dir}, "for-each-ref", "--merged=HEAD",
		"--format=%(refname:lstrip=2)", "refs/heads")
	if err != nil {
		return nil, err
	}
	for i := range all[1:] {
		now := &all[i+1]
		now.Merged = now.Branch != "" && strings.Contains("\n"+merged, "\n"+now.Branch+"\n")
	}
	return all, nil
}

// AddWorktree checks out a branch in the new directory dir. If the branch does not exist, AddWorktree creates it. The
// new branch starts at origin/BRANCH, or else at the commit that is checked out in at.Dir.
func (g *Git) AddWorktree(ctx context.Context, at Place, branch, dir string) error {
	if _, err := g.Run(ctx, at, "check-ref-format", "--branch", branch); err != nil || strings.HasPrefix(branch, "-") {
		return fmt.Errorf("%w: %q", orchestrator.ErrBadBranch, branch)
	}
	known, err := g.Run(ctx, at, "for-each-ref", "--format=%(refname)", "refs/heads/"+branch,
		"refs/remotes/origin/"+branch)
	if err != nil {
		return err
	}
	known = "\n" + known
	args := []string{"-b", branch, "--", dir}
	switch {
	case strings.Contains(known, "\nrefs/heads/"+branch+"\n"):
		args = []string{"--", dir, branch}
	case strings.Contains(known, "\nrefs/remotes/origin/"+branch+"\n"):
		args = []string{"--track", "-b", branch, "--", dir, "refs/remotes/origin/" + branch}
	}
	if _, err := g.Run(ctx, at, append([]string{"worktree", "add", "--no-checkout"}, args...)...); err != nil {
		return err
	}
	if err = g.checkOut(ctx, Place{at.In, dir}); err != nil {
		return errors.Join(err, g.deleteWorktree(context.WithoutCancel(ctx), at, dir))
	}
	return nil
}

// Dirty reports whether a worktree contains uncommitted changes.
func (g *Git) Dirty(ctx context.Context, at Place) (dirty bool, err error) {
	if at.In != "" {
		out, err := g.Run(ctx, at, "status", "--porcelain", "-z", "--untracked-files=normal",
			"--ignore-submodules=dirty")
		return out != "", err
	}
	head := "HEAD"
	_, err = g.Run(ctx, at, "rev-parse", "--verify", "-q", head)
	if exit := (*ExitError)(nil); errors.As(err, &exit) && exit.Code == 1 { // the branch has no commit yet
		head, err = g.Run(ctx, at, "hash-object", "-t", "tree", "/dev/null")
	}
	if err != nil {
		return false, err
	}
	_, err = g.Run(ctx, at, "diff-index", "--cached", "--quiet", strings.TrimSpace(head))
	if exit := (*ExitError)(nil); errors.As(err, &exit) && exit.Code == 1 {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	n, err := g.neutralFor(ctx, at.Dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	list := []string{"ls-files", "-z", "--modified", "--deleted", "--others", "--directory", "--no-empty-directory",
		"--exclude-standard"}
	out, err := n.run(ctx, n.index, "", list...)
	return out != "", err
}

// RemoveWorktree removes a worktree, but not its branch. If the worktree contains uncommitted changes, it returns
// ErrDirtyWorktree, unless changes is orchestrator.DropChanges. On this host, RemoveWorktree does not look for changes
// in submodules, so it also returns ErrDirtyWorktree for a worktree with submodules.
func (g *Git) RemoveWorktree(ctx context.Context, at Place, dir string, changes orchestrator.Changes) error {
	force := changes == orchestrator.DropChanges
	if at.In == "" {
		if !force {
			if err := g.checkClean(ctx, dir); err != nil {
				return err
			}
		}
		return g.deleteWorktree(ctx, at, dir)
	}
	if force {
		return g.deleteWorktree(ctx, at, dir)
	}
	_, err := g.runAcross(ctx, at, []string{dir}, "worktree", "remove", "--", dir)
	if err == nil {
		return nil
	}
	if dirty, dirtyErr := g.Dirty(ctx, Place{at.In, dir}); dirtyErr == nil && dirty {
		return orchestrator.ErrDirtyWorktree
	}
	return err
}

// checkClean returns ErrDirtyWorktree if a worktree on this host contains changes or submodules. A missing worktree is
// clean.
func (g *Git) checkClean(ctx context.Context, dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dirty, err := g.Dirty(ctx, Place{Dir: dir})
	if err != nil || dirty {
		return cmp.Or(err, orchestrator.ErrDirtyWorktree)
	}
	listed, err := g.Run(ctx, Place{Dir: dir}, "ls-files", "-s", "-z")
	if err != nil {
		return err
	}
	if _, nested := splitIndex(listed); nested != "" {
		return orchestrator.ErrDirtyWorktree
	}
	return nil
}

// deleteWorktree deletes the files of a worktree, and its entry in the repository. Like git worktree remove --force, it
// refuses to delete a locked worktree.
//
// On this host, ductor deletes the files itself. git worktree remove would follow links, and an agent in a sandbox can
// replace the worktree, or a directory above it, by a link at any time.
func (g *Git) deleteWorktree(ctx context.Context, at Place, dir string) error {
	if at.In != "" {
		_, err := g.runAcross(ctx, at, []string{dir}, "worktree", "remove", "--force", "--", dir)
		return err
	}
	common, err := g.Run(ctx, at, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return err
	}
	if err := unlinkWorktree(strings.TrimSuffix(common, "\n"), dir); err != nil {
		return fmt.Errorf("remove a worktree: %w", err)
	}
	return nil
}
