package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/internal/rooted"
)

// RealPath resolves path with rooted.RealPath. It returns path unchanged if that fails.
func RealPath(path string) string {
	if real, err := rooted.RealPath(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Lies reports whether path is dir or lies below dir. It compares the paths as text, and does not resolve links.
func Lies(path, dir string) bool {
	if !filepath.IsAbs(path) || !filepath.IsAbs(dir) {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	}
	dir = filepath.Clean(dir)
	// This is ten times faster than filepath.Rel for a path outside of dir.
	rest, begins := strings.CutPrefix(filepath.Clean(path), dir)
	return begins && (rest == "" || rest[0] == filepath.Separator || dir == string(filepath.Separator))
}

// VisibleBelow reports whether path is below dir and not hidden. A path is hidden if its own name, or a directory
// between dir and path, starts with a dot. Tools read their settings from hidden files. VisibleBelow checks the path as
// given and with links resolved. The path may be relative to dir.
func VisibleBelow(dir, path string) bool {
	if path == "" || !filepath.IsAbs(dir) {
		return false
	}
	dir, path = filepath.Clean(dir), Absolute(dir, path)
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil { // for example, dir is on another machine
		return false
	}
	real, err := rooted.RealPath(path)
	return err == nil && visible(dir, path) && visible(realDir, real)
}

func visible(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)),
		func(part string) bool { return strings.HasPrefix(part, ".") })
}

// Touches reports whether path is one of the given files or directories, or lies below one of them. It checks path as
// given and with links resolved. path may be relative to dir, or start with "~/". files must be absolute, with links
// resolved.
func Touches(files []string, dir, path string) bool { return anyTouches(files, dir, []string{path}) }

// anyTouches reports whether Touches returns true for one of the paths.
func anyTouches(files []string, dir string, paths []string) bool {
	if len(files) == 0 {
		return false
	}
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = Absolute(dir, path)
	}
	all = append(all, rooted.RealPaths(all)...)
	return slices.ContainsFunc(all, func(path string) bool {
		return slices.ContainsFunc(files, func(file string) bool { return Lies(path, file) })
	})
}

// Absolute returns an absolute path. A path that starts with "~/" is relative to the home directory; other relative
// paths are relative to dir.
func Absolute(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// Relative returns path relative to dir if path is inside dir. It returns any other path unchanged.
func Relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// pathBytes is the greatest length of a text that pathsIn returns as a path.
const pathBytes = 4096

// Names reports whether a JSON string in a tool's input is a path to one of the given files or directories, or below
// one of them; see Touches. It does not search the words of command lines.
func Names(files []string, dir string, input json.RawMessage) bool {
	return len(files) > 0 && anyTouches(files, dir, pathsIn(textsIn(input)))
}

// textsIn returns all strings in a tool's input that are not keys. It returns nil if the input is not valid JSON.
func textsIn(input json.RawMessage) []string {
	var v any
	if json.Unmarshal(input, &v) != nil {
		return nil
	}
	return appendTexts(nil, v)
}

func appendTexts(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(texts, v)
	case []any:
		for _, e := range v {
			texts = appendTexts(texts, e)
		}
	case map[string]any:
		for _, e := range v {
			texts = appendTexts(texts, e)
		}
	}
	return texts
}

// pathsIn returns the texts that can be paths, each once, in order.
func pathsIn(texts []string) []string {
	texts = slices.DeleteFunc(texts, func(text string) bool {
		return text == "" || len(text) > pathBytes || strings.Contains(text, "\n")
	})
	for i, text := range texts {
		texts[i] = strings.TrimPrefix(text, "file://")
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// KeptFile returns the path at which Keep stores content. The file name consists of kind, a hash of content, and ext.
func KeptFile(dir, kind, ext, content string) string {
	sum := sha256.Sum256([]byte(content))
	return filepath.Join(dir, kind+"-"+hex.EncodeToString(sum[:16])+ext)
}

// keptAnew is the age of a modification time after which Keep updates the time. Regular updates protect a used file:
// ductor may remove a file that was not modified for a day.
const keptAnew = time.Hour

// Keep stores content in a file and returns its path; see KeptFile. If the file exists with this content, Keep does not
// write it again. If an agent changed the file, Keep restores the content. Keep returns an error if other users can
// write to dir.
func Keep(dir, kind, ext, content string) (path string, err error) {
	if err := private(dir); err != nil {
		return "", err
	}
	path = KeptFile(dir, kind, ext, content)
	if holds(path, content) {
		return path, nil
	}
	f, err := os.CreateTemp(dir, kind+"-*")
	if err != nil {
		return "", fmt.Errorf("write %s: %w", kind, err)
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.EISDIR) { // an agent created a directory at this path
		err = errors.Join(os.RemoveAll(path), os.Rename(f.Name(), path))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("write %s: %w", kind, err), os.Remove(f.Name()))
	}
	return path, nil
}

// holds reports whether path is a regular file with this content. If so, holds updates a modification time older than
// keptAnew.
func holds(path, content string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // opening a pipe would block
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(content)) {
		return false
	}
	have, err := io.ReadAll(io.LimitReader(f, info.Size()+1))
	if err != nil || string(have) != content {
		return false
	}
	if now := time.Now(); now.Sub(info.ModTime()).Abs() > keptAnew {
		_ = os.Chtimes(path, now, now)
	}
	return true
}

// private creates a directory that only this user can write to. It returns an error if the directory exists and others
// can write to it.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a place for files of ours: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the place of files of ours: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ok || int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("the place of files of ours, %s, is open to others", dir)
	}
	return nil
}
