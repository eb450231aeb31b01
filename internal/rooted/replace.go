package rooted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile is Replace for the file at a path, whose directory is made for this user alone where it is not there.
func ReplaceFile(path string, content []byte, check func(part string) error) error {
	dir, name := filepath.Dir(path), filepath.Base(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(Replace(root, name, content, check), root.Close())
}

// Replace writes a file for this user alone, in place of one with this name: after a crash there is the old or the new one, and the new one once Replace returned.
// Before the new one counts, check gets its name while it is a part; on an error of check the old one stays. A nil check allows
// all. It is for directories of ductor's own user: a part that a crash left is written anew.
func Replace(root *os.Root, name string, content []byte, check func(part string) error) error {
	part := name + ".part"
	if err := root.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil && check != nil {
		err = check(part)
	}
	if err != nil {
		return errors.Join(err, root.Remove(part))
	}
	if err := root.Rename(part, name); err != nil {
		return err
	}
	return Sync(root)
}

// Sync brings the names in a directory to the disk.
func Sync(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
