package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"ductor/internal/rooted"
	"ductor/internal/store"
)

// Existing determines how Restore handles state that already exists.
type Existing string

const (
	Refuse Existing = "refuse" // change nothing, and return ErrInUse
	Aside  Existing = "aside"  // move the existing state into a new directory inside State
)

// Target is the destination of Restore. The caller must ensure that no other process uses it.
type Target struct {
	State    string // path of the state directory; created if missing
	Database string // name of the database in State
	Existing Existing
}

// draftsDir is the directory for extracted files that are not verified yet.
const draftsDir = "restore.draft"

// Restore replaces the state with the contents of an archive. First it verifies the whole archive, including the
// database. It moves the existing state to a new directory and returns the directory's name, or "" if no state existed.
func Restore(ctx context.Context, archive string, to Target) (m Manifest, aside string, err error) {
	if err := os.MkdirAll(to.State, 0o700); err != nil {
		return m, "", fmt.Errorf("restore: %w", err)
	}
	root, err := os.OpenRoot(to.State)
	if err != nil {
		return m, "", fmt.Errorf("restore: %w", err)
	}
	defer root.Close()
	defer func() { err = errors.Join(err, root.RemoveAll(draftsDir)) }()
	m, err = extractDrafts(ctx, root, archive, to)
	if err == nil {
		aside, err = installDrafts(root, to)
	}
	if err != nil {
		return m, aside, fmt.Errorf("restore: %w", err)
	}
	return m, aside, nil
}

func extractDrafts(ctx context.Context, root *os.Root, archive string, to Target) (m Manifest, err error) {
	if err := errors.Join(root.RemoveAll(draftsDir), root.Mkdir(draftsDir, 0o700)); err != nil {
		return m, err
	}
	m, err = read(archive, func(name string, mode fs.FileMode, from io.Reader) error {
		if below, ok := strings.CutPrefix(name, statePrefix); ok && ctx.Err() == nil {
			return extractFile(root, path.Join(draftsDir, below), mode, from)
		}
		return ctx.Err()
	})
	if err != nil {
		return m, err
	}
	database := filepath.Join(to.State, draftsDir, to.Database)
	if _, err := os.Stat(database); err != nil {
		return m, damaged(errors.New("it holds no database"))
	}
	return m, store.Check(ctx, database)
}

func extractFile(root *os.Root, name string, mode fs.FileMode, from io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode&0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}

// installDrafts moves the extracted files to their final places. The database is the last one, because a state
// directory without a database counts as empty.
func installDrafts(root *os.Root, to Target) (aside string, err error) {
	names, err := listNames(root, draftsDir)
	if err != nil {
		return "", err
	}
	there, empty, err := splitExisting(root, append(names, to.Database+"-wal", to.Database+"-shm"))
	if err != nil {
		return "", err
	}
	if len(there) > 0 && to.Existing != Aside {
		return "", fmt.Errorf("%w in %s (%s)", ErrInUse, to.State, strings.Join(there, ", "))
	}
	for _, name := range empty {
		if err := root.Remove(name); err != nil {
			return "", err
		}
	}
	if len(there) > 0 {
		aside = "before-restore-" + time.Now().UTC().Format("20060102T150405.000")
		if err := moveAside(root, there, aside); err != nil {
			return "", err
		}
		aside = filepath.Join(to.State, aside)
	}
	err = syncTree(root, draftsDir)
	for _, name := range names {
		if name != to.Database {
			err = errors.Join(err, root.Rename(path.Join(draftsDir, name), name))
		}
	}
	if err = errors.Join(err, rooted.Sync(root)); err != nil {
		return aside, err
	}
	return aside, errors.Join(root.Rename(path.Join(draftsDir, to.Database), to.Database), rooted.Sync(root))
}

// syncTree flushes the directory entries of a directory and of all its subdirectories to the disk.
func syncTree(root *os.Root, dir string) error {
	return fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		below, err := root.OpenRoot(name)
		if err != nil {
			return err
		}
		return errors.Join(rooted.Sync(below), below.Close())
	})
}

// splitExisting returns the files that exist: first those with content, then the empty ones.
func splitExisting(root *os.Root, all []string) (full, empty []string, err error) {
	for _, name := range all {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, nil, err
		case isEmpty(root, name, info):
			empty = append(empty, name)
		default:
			full = append(full, name)
		}
	}
	return full, empty, nil
}

func isEmpty(root *os.Root, name string, info fs.FileInfo) bool {
	if info.IsDir() {
		inside, err := listNames(root, name)
		return err == nil && len(inside) == 0
	}
	return info.Mode().IsRegular() && info.Size() == 0
}

func moveAside(root *os.Root, all []string, aside string) error {
	err := root.Mkdir(aside, 0o700)
	for _, name := range all {
		if err == nil {
			err = root.Rename(name, path.Join(aside, name))
		}
	}
	return err
}

func listNames(root *os.Root, dir string) (all []string, err error) {
	entries, err := fs.ReadDir(root.FS(), dir)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}
