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
func RealPath(path string) (string, error) { return resolver{}.resolve(path) }

// resolver resolves the symbolic links in paths. It maps existing paths to their real paths. This cache prevents a
// resolver from inspecting the same directory again for each path in the directory.
type resolver map[string]string

func (r resolver) resolve(path string) (string, error) {
	path = filepath.Clean(path)
	for range maxLinks {
		next, done, err := r.step(path)
		if done || err != nil {
			return next, err
		}
		path = next
	}
	return "", syscall.ELOOP
}

// step resolves the symbolic links in the existing part of a path, and returns done = true. If step finds a link whose
// target is missing, it only replaces the link with the target, and returns done = false. The caller must then call
// step again with the returned path.
func (r resolver) step(path string) (next string, done bool, err error) {
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, ok := r[at]; ok {
			return filepath.Join(real, rest), true, nil
		}
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			// This part of the path does not exist, so continue with its parent. EvalSymlinks would inspect all parents
			// again, and then fail.
			continue
		}
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			r[at] = real
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

// RealPaths is like RealPath for several paths. A path that cannot be inspected stays unchanged.
func RealPaths(paths []string) []string {
	all, r := make([]string, len(paths)), resolver{}
	for i, path := range paths {
		real, err := r.resolve(path)
		if err != nil {
			real = filepath.Clean(path)
		}
		all[i] = real
	}
	return all
}
