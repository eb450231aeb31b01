package rooted

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const maxLinks = 40

// RealPath resolves the symbolic links in the existing part of an absolute path. It also follows a link whose target is
// missing. It returns an error if the path cannot be inspected.
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

// resolveStep resolves the symbolic links in the existing part of a path. If the target of a link is missing,
// resolveStep only replaces this link with its target and returns done = false. The caller must then call resolveStep
// with the result.
func resolveStep(path string) (next string, done bool, err error) {
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			// This part of the path does not exist, so continue with its parent. EvalSymlinks would inspect all parents
			// again, and then fail.
			continue
		}
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

// RealPaths calls RealPath for each path. A path that cannot be inspected stays unchanged.
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
