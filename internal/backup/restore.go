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

// Existing says what becomes of state that is there already.
type Existing string

// The choices.
const (
	Refuse Existing = "refuse" // ErrInUse, and nothing changes
	Aside  Existing = "aside"  // it is moved into a directory beside it
)

// Target is where Restore puts an archive. The caller keeps other processes away from it.
type Target struct {
	State    string // the state directory; made if it is not there
	Database string // the database's name in it
	Existing Existing
}

// drafts is where files are until all of them are right.
const drafts = "restore.draft"

// Restore puts the state of an archive into place, once all of it is read and right, the database included. It returns
// the manifest, and the directory to which it moved the state that was there; empty for none.
func Restore(ctx context.Context, archive string, to Target) (m Manifest, aside string, err error) {
	if err := os.MkdirAll(to.State, 0o700); err != nil {
		return m, "", fmt.Errorf("restore: %w", err)
	}
	root, err := os.OpenRoot(to.State)
	if err != nil {
		return m, "", fmt.Errorf("restore: %w", err)
	}
	defer root.Close()
	defer func() { err = errors.Join(err, root.RemoveAll(drafts)) }()
	m, err = draft(ctx, root, archive, to)
	if err == nil {
		aside, err = place(root, to)
	}
	if err != nil {
		return m, aside, fmt.Errorf("restore: %w", err)
	}
	return m, aside, nil
}

// draft reads the archive into the directory of drafts, and checks all of it.
func draft(ctx context.Context, root *os.Root, archive string, to Target) (m Manifest, err error) {
	if err := errors.Join(root.RemoveAll(drafts), root.Mkdir(drafts, 0o700)); err != nil {
		return m, err
	}
	m, err = read(archive, func(name string, mode fs.FileMode, from io.Reader) error {
		if below, ok := strings.CutPrefix(name, statePrefix); ok && ctx.Err() == nil {
			return put(root, path.Join(drafts, below), mode, from)
		}
		return ctx.Err()
	})
	if err != nil {
		return m, err
	}
	database := filepath.Join(to.State, drafts, to.Database)
	if _, err := os.Stat(database); err != nil {
		return m, damaged(errors.New("it holds no database"))
	}
	return m, store.Check(ctx, database)
}

func put(root *os.Root, name string, mode fs.FileMode, from io.Reader) error {
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

// place moves the drafts to their places, the database last: without it there is no state yet.
func place(root *os.Root, to Target) (aside string, err error) {
	names, err := names(root, drafts)
	if err != nil {
		return "", err
	}
	there, empty, err := existing(root, append(names, to.Database+"-wal", to.Database+"-shm"))
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
	err = syncAll(root, drafts)
	for _, name := range names {
		if name != to.Database {
			err = errors.Join(err, root.Rename(path.Join(drafts, name), name))
		}
	}
	if err = errors.Join(err, rooted.Sync(root)); err != nil {
		return aside, err
	}
	return aside, errors.Join(root.Rename(path.Join(drafts, to.Database), to.Database), rooted.Sync(root))
}

// syncAll brings the names in a directory and in those below it to the disk.
func syncAll(root *os.Root, dir string) error {
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

// existing parts those of names that are there into those with something in them and empty ones.
func existing(root *os.Root, all []string) (there, empty []string, err error) {
	for _, name := range all {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, nil, err
		case isEmpty(root, name, info):
			empty = append(empty, name)
		default:
			there = append(there, name)
		}
	}
	return there, empty, nil
}

func isEmpty(root *os.Root, name string, info fs.FileInfo) bool {
	if info.IsDir() {
		inside, err := names(root, name)
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

func names(root *os.Root, dir string) (all []string, err error) {
	entries, err := fs.ReadDir(root.FS(), dir)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}
