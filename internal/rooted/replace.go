package rooted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile is like Replace, for a path. If the directory is missing, it creates the directory with mode 0700.
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

// Replace atomically writes a file with mode 0600. If Replace returns nil, the new content survives a power failure.
// After a crash during Replace, the file has either the old or the new content.
//
// If check is not nil, Replace calls it with the name of the temporary file, before the rename. If check returns an
// error, the old file stays. The name of the temporary file is predictable, so use Replace only in directories to which
// no other user can write.
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

// Sync flushes the entries of a directory to the disk.
func Sync(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
