package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/orchestrator"
)

// DirectoryFunc returns a directory without symbolic links. It returns an error if conversations must not work there.
type DirectoryFunc func(path string) (string, error)

func (d DirectoryFunc) check(dirs ...string) error {
	for _, dir := range dirs {
		if real, err := d(dir); err != nil || real != dir {
			return orchestrator.ErrOutsideRoot
		}
	}
	return nil
}

// OpenWithin is like Open, but returns orchestrator.ErrOutsideRoot if conversations must not work in the working tree
// or in its Git directory. An agent can replace .git, or a part of it, by a link to any directory. So methods of the
// Repo that write to the Git directory also return ErrOutsideRoot if they would write outside of the directories where
// conversations may work.
func (g *Git) OpenWithin(ctx context.Context, at Place, directory DirectoryFunc) (*Repo, error) {
	r, err := g.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	r.directory = directory
	if err := directory.check(r.Top); err != nil {
		return nil, err
	}
	if r.in == "" && !r.ownGitDir(ctx) {
		if err := directory.check(r.gitDir, r.common); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// checkLinks calls DirectoryFunc.checkLinks for a Repo from OpenWithin. It must be called before each write, because a
// turn may have added links. It checks nothing in a sandbox, because Git has no more rights there than the agents.
func (r *Repo) checkLinks(names string) error {
	if r.in != "" || r.directory == nil {
		return nil
	}
	return r.directory.checkLinks(names, r.gitDir, r.common)
}

// CheckGitDir returns orchestrator.ErrOutsideRoot if Git would write outside of the directories where conversations may
// work when it creates or removes a worktree.
func (g *Git) CheckGitDir(ctx context.Context, at Place, directory DirectoryFunc) error {
	if at.In != "" { // in a sandbox, Git can write only where the agents can write, too
		return nil
	}
	out, err := g.Run(ctx, at, "rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-common-dir")
	if err != nil {
		return err
	}
	dirs := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if err := directory.check(dirs...); err != nil {
		return err
	}
	return directory.checkLinks(writtenNames, dirs...)
}

// checkLinks returns orchestrator.ErrOutsideRoot if a link in a Git directory leads to a place where conversations must
// not work. names lists the files and directories to check, separated by spaces. Git follows such links when it writes,
// for example when it appends to the file logs/HEAD.
func (d DirectoryFunc) checkLinks(names string, gitDirs ...string) error {
	slices.Sort(gitDirs)
	for _, dir := range slices.Compact(gitDirs) {
		for _, name := range strings.Fields(names) {
			if err := d.checkLink(dir, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// writtenNames are the files and directories of a Git directory to which Git writes. objectNames are those to which it
// writes objects.
const (
	objectNames  = "objects"
	writtenNames = "config packed-refs refs reftable objects logs logs/refs worktrees HEAD index"
)

// checkLink returns orchestrator.ErrOutsideRoot if the file or directory name in a Git directory is or contains a link
// that ductor does not accept:
//   - name itself may be a link out of the Git directory if conversations may work in the directory of its target. Some
//     tools share files and directories between repositories through such links, but never HEAD and index.
//   - A directory must not contain a link out of that directory. No tool creates links to single refs, logs or objects.
func (d DirectoryFunc) checkLink(gitDir, name string) error {
	path := filepath.Join(gitDir, name)
	real, err := rooted.RealPath(path)
	if err != nil {
		return orchestrator.ErrOutsideRoot
	}
	if real != path && !cli.Lies(real, gitDir) {
		if name == "HEAD" || name == "index" || d.check(filepath.Dir(real)) != nil {
			return orchestrator.ErrOutsideRoot
		}
	}
	return checkNoLinks(real, name)
}

// checkNoLinks returns orchestrator.ErrOutsideRoot if the directory dir contains a link that leads out of dir. The path
// dir itself contains no links. name is the name of the directory in the Git directory. If name is objects or
// worktrees, checkNoLinks does not check subdirectories.
//
// If name is logs, checkNoLinks ignores the link refs in dir, which git-new-workdir creates. checkLinks checks
// logs/refs separately.
func checkNoLinks(dir, name string) error {
	shallow := name == "objects" || name == "worktrees"
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case shallow && entry.IsDir() && path != dir:
			return fs.SkipDir
		case entry.Type()&os.ModeSymlink == 0 || name == "logs" && path == filepath.Join(dir, "refs"):
			return nil
		}
		if real, err := rooted.RealPath(path); err != nil || !cli.Lies(real, dir) {
			return orchestrator.ErrOutsideRoot
		}
		return nil
	})
}
