package rooted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxLinks is how many links RealPath follows one after the other.
const maxLinks = 40

// RealPath returns an absolute path with its links resolved as far as it exists, also a link to what does not exist yet. The
// error says why a path cannot be looked at.
func RealPath(path string) (string, error) {
	path = filepath.Clean(path)
	for range maxLinks {
		next, done, err := follow(path)
		if done || err != nil {
			return next, err
		}
		path = next
	}
	return "", syscall.ELOOP
}

// follow resolves the part of a path that exists. Where a link in it leads to what does not exist, it follows that link
// alone and is not done.
func follow(path string) (next string, done bool, err error) {
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", false, err
		}
		if to, err := os.Readlink(at); err == nil {
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(at), to)
			}
			return filepath.Join(to, rest), false, nil
		}
		if at == filepath.Dir(at) {
			return path, true, nil
		}
	}
}

// RealPaths resolves several paths; see RealPath. One that cannot be looked at stays as it is.
func RealPaths(paths []string) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		real, err := RealPath(path)
		if err != nil {
			real = filepath.Clean(path)
		}
		all[i] = real
	}
	return all
}
