package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ductor/internal/rooted"
)

// unlinkWorktree deletes the files of the worktree dir, and the worktree's entry in the Git directory common. It opens
// both directories without following links, and deletes only below the open directories.
//
// An agent may be able to write to dir and common. So unlinkWorktree deletes no files unless dir names the entry and
// the entry names dir. It deletes the file .git and the entry last, so that the caller can repeat a failed call.
func unlinkWorktree(common, dir string) (err error) {
	entries, err := rooted.OpenDir(filepath.Join(common, "worktrees"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, entries.Close()) }()
	id, err := worktreeEntry(entries, filepath.Join(common, "worktrees"), dir)
	if err != nil {
		return err
	}
	if _, err := entries.Lstat(filepath.Join(id, "locked")); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(errors.New("it is locked"), err)
	}
	if err := deleteTree(dir, filepath.Join(common, "worktrees", id)); err != nil {
		return err
	}
	return entries.RemoveAll(id)
}

// worktreeEntry returns the name of the entry of the worktree dir. entries is the directory with the entries of all
// worktrees, and path is its path.
func worktreeEntry(entries *os.Root, path, dir string) (id string, err error) {
	all, err := fs.ReadDir(entries.FS(), ".")
	if err != nil {
		return "", err
	}
	for _, e := range all {
		if !e.IsDir() {
			continue
		}
		to, err := readPath(entries, filepath.Join(e.Name(), "gitdir"), filepath.Join(path, e.Name()))
		if err == nil && to == filepath.Join(dir, ".git") {
			return e.Name(), nil
		}
	}
	return "", fmt.Errorf("the repository has no worktree %s", dir)
}

// readPath reads a file that contains a path, which may be relative to base.
func readPath(root *os.Root, name, base string) (string, error) {
	content, err := readRegular(root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0))
	if err != nil {
		return "", err
	}
	path := strings.TrimSpace(strings.TrimPrefix(string(content), "gitdir: "))
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path), nil
}

// deleteTree deletes the directory of a worktree. It returns an error and deletes nothing if the file .git in the
// directory does not name the given entry. If the directory or its file .git is missing, there is no worktree to delete.
func deleteTree(dir, entry string) (err error) {
	tree, err := rooted.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	to, err := readPath(tree, ".git", dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if to != entry {
		return fmt.Errorf("%s belongs to %s", dir, to)
	}
	all, err := fs.ReadDir(tree.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Name() != ".git" {
			if err := tree.RemoveAll(e.Name()); err != nil {
				return err
			}
		}
	}
	left, err := fs.ReadDir(tree.FS(), ".")
	// If files are left, keep .git, so that the user can try again: deleteTree ignores a directory without .git.
	if err == nil && len(left) > 1 {
		err = fmt.Errorf("%s is still in use", dir)
	}
	if err != nil {
		return err
	}
	if err := tree.Remove(".git"); err != nil {
		return err
	}
	return deleteEmpty(tree, dir)
}

// deleteEmpty deletes the empty directory tree, unless something else is now at its path.
func deleteEmpty(tree *os.Root, path string) (err error) {
	parent, err := rooted.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parent.Close()) }()
	name := filepath.Base(path)
	named, err := parent.Lstat(name)
	if err != nil {
		return err
	}
	if opened, err := tree.Stat("."); err != nil || !os.SameFile(named, opened) {
		return errors.Join(fmt.Errorf("%s was replaced", path), err)
	}
	return parent.Remove(name)
}
