package rooted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxLinks limits how many links RealPath follows.
const maxLinks = 40

// RealPath resolves the links in an absolute path, as far as the path exists. It also follows links whose targets are
// missing. The error explains why the path cannot be inspected.
func RealPath(path string) (string, error) {
	path = filepath.Clean(path)
	for range maxLinks {
		next, done, err := resolveStep(path)
		if done || err != nil {
			return next, err
		}
		path = next
	}
	return "", syscall.ELOOP
}

// resolveStep resolves the links in the existing part of a path. If it meets a link with a missing target, it replaces
// only that link and returns done = false, and the caller calls it again.
func resolveStep(path string) (next string, done bool, err error) {
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

// RealPaths applies RealPath to each path. Paths that cannot be inspected stay unchanged.
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
