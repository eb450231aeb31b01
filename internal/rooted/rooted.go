// Package rooted reads, lists and writes files below a directory that other programs may change at any time. It does
// not follow symbolic links, and opens only regular files and directories. Callers decide with CheckVisible which hidden
// ones they open.
package rooted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Refusal is the reason why a file cannot be read or written.
type Refusal string

const (
	NotThere  Refusal = "not-there"
	Hidden    Refusal = "hidden"    // the name of the file, or of a directory in its path, begins with a dot
	Link      Refusal = "link"      // the path is or contains a symbolic link
	HardLink  Refusal = "hard-link" // the file has several names, perhaps outside of the directory
	Special   Refusal = "special"   // a device, a pipe or a socket
	Directory Refusal = "directory" // a directory, where a file is needed
	NoFolder  Refusal = "no-folder" // not a directory
	Empty     Refusal = "empty"
	TooLarge  Refusal = "too-large"
	Exists    Refusal = "exists"
	Failed    Refusal = "failed" // the operating system returned an error
)

// Error is the error for a file that cannot be read or written.
type Error struct {
	Refusal Refusal `json:"refusal"`
	Size    int64   `json:"size,omitempty"` // size of the file, for TooLarge
	Detail  string  `json:"detail,omitempty"`
}

func (e *Error) Error() string {
	return strings.TrimSpace(string(e.Refusal) + " " + e.Detail)
}

func toError(err error) *Error {
	var own *Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Refusal: NotThere}
	case errors.Is(err, fs.ErrExist):
		return &Error{Refusal: Exists}
	case errors.Is(err, syscall.ENOTDIR):
		return &Error{Refusal: NoFolder}
	}
	return &Error{Refusal: Failed, Detail: err.Error()}
}

// Entry is a file or a directory in a listing.
type Entry struct {
	Name string `json:"name"`
	Dir  bool   `json:"dir,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// Read returns the content of the file at path, which is relative to dir. If the content has more than limit bytes, the
// error has the Refusal TooLarge. All errors are *Error.
func Read(dir, path string, limit int64) ([]byte, error) {
	return readBelow(os.OpenRoot, dir, path, limit)
}

// ReadReal is like Read, but returns an error if any part of the absolute path dir is a symbolic link.
func ReadReal(dir, path string, limit int64) ([]byte, error) {
	return readBelow(OpenDir, dir, path, limit)
}

func readBelow(open func(dir string) (*os.Root, error), dir, path string, limit int64) ([]byte, error) {
	folder, name, err := openParent(open, dir, path)
	if err != nil {
		return nil, toError(err)
	}
	defer folder.Close()
	content, err := read(folder, name, limit)
	if err != nil {
		return nil, toError(err)
	}
	return content, nil
}

func read(folder *os.Root, name string, limit int64) ([]byte, error) {
	named, err := folder.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(named); err != nil {
		return nil, err
	}
	// Do not open a large file. The file may be ductor's own database, and closing it would release SQLite's locks.
	if named.Size() > limit {
		return nil, &Error{Refusal: TooLarge, Size: named.Size()}
	}
	// Open without blocking, because a pipe may have replaced the file.
	f, err := folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !os.SameFile(named, info):
		return nil, &Error{Refusal: Link, Detail: "it was replaced"}
	case info.Size() > limit:
		return nil, &Error{Refusal: TooLarge, Size: info.Size()}
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Nlink != 1 {
		return nil, &Error{Refusal: HardLink}
	}
	content := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	switch n, err := content.ReadFrom(io.LimitReader(f, limit+1)); {
	case err != nil:
		return nil, err
	case n > limit:
		return nil, &Error{Refusal: TooLarge, Size: n}
	case n == 0:
		return nil, &Error{Refusal: Empty}
	}
	return content.Bytes(), nil
}

func checkRegular(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return &Error{Refusal: Directory}
	case mode&fs.ModeSymlink != 0:
		return &Error{Refusal: Link}
	}
	return &Error{Refusal: Special}
}

// MostEntries limits how many entries of a directory List reads. If a directory has more entries, it is undefined which
// of them List reads.
const MostEntries = 900

// List returns the files and directories in subdir, which is relative to dir. Directories come first. List omits
// symbolic links, special files and hidden names. All errors are *Error.
func List(dir, subdir string) ([]Entry, error) {
	folder, _, err := openParent(os.OpenRoot, dir, filepath.Join(subdir, "x"))
	if err != nil {
		return nil, toError(err)
	}
	defer folder.Close()
	f, err := folder.Open(".")
	if err != nil {
		return nil, toError(err)
	}
	defer f.Close()
	found, err := f.ReadDir(MostEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, toError(err)
	}
	var all []Entry
	for _, e := range found {
		info, err := e.Info()
		if err != nil || hidden(e.Name()) || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		entry := Entry{Name: e.Name(), Dir: info.IsDir()}
		if !entry.Dir {
			entry.Size = info.Size()
		}
		all = append(all, entry)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		if a.Dir != b.Dir {
			if a.Dir {
				return -1
			}
			return 1
		}
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return all, nil
}

// Write atomically creates the file at path, which is relative to dir. If the file exists, the error has the Refusal
// Exists. All errors are *Error.
func Write(dir, path string, content []byte) error {
	folder, name, err := openParent(os.OpenRoot, dir, path)
	if err != nil {
		return toError(err)
	}
	defer folder.Close()
	if err := write(folder, name, content); err != nil {
		return toError(err)
	}
	return nil
}

func write(folder *os.Root, name string, content []byte) error {
	if info, err := folder.Lstat(name); err == nil {
		if info.IsDir() {
			return &Error{Refusal: Directory}
		}
		return &Error{Refusal: Exists}
	}
	part := fmt.Sprintf("%s.part-%d", name, os.Getpid())
	f, err := folder.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer folder.Remove(part) // removes only the temporary name; after Link, the file also has its final name
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := folder.Link(part, name); err != nil { // fails if the name exists
		return err
	}
	return Sync(folder)
}

// openParent opens the parent directory of a file. The parameter below is the path of the file relative to dir.
// openParent opens dir by calling open, and then opens each directory on the path in its parent. It also returns the
// last element of the path.
func openParent(open func(dir string) (*os.Root, error), dir, below string) (*os.Root, string, error) {
	below = filepath.Clean(below)
	if !filepath.IsLocal(below) {
		return nil, "", &Error{Refusal: NotThere}
	}
	at, err := open(dir)
	if err != nil {
		return nil, "", err
	}
	steps := strings.Split(below, string(filepath.Separator))
	last := len(steps) - 1
	at, err = descend(at, steps[:last])
	return at, steps[last], err
}

// OpenDir opens a directory. It returns an error if any part of the absolute path is a symbolic link.
func OpenDir(path string) (*os.Root, error) {
	at, err := os.OpenRoot(string(filepath.Separator))
	if err != nil {
		return nil, err
	}
	return descend(at, strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator }))
}

// descend opens a directory below the directory at. It opens the elements of the path (steps) one after another, and
// closes all directories except the last one.
func descend(at *os.Root, steps []string) (*os.Root, error) {
	for _, step := range steps {
		next, err := openSubdir(at, step)
		if err = errors.Join(err, at.Close()); err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// openSubdir opens a subdirectory. It returns an error for a symbolic link.
func openSubdir(at *os.Root, step string) (*os.Root, error) {
	named, err := at.Lstat(step)
	switch {
	case err != nil:
		return nil, err
	case named.Mode()&fs.ModeSymlink != 0:
		return nil, &Error{Refusal: Link}
	case !named.IsDir():
		return nil, &Error{Refusal: NoFolder}
	}
	next, err := at.OpenRoot(step)
	if err != nil {
		return nil, err
	}
	if opened, err := next.Stat("."); err != nil || !os.SameFile(named, opened) {
		return nil, errors.Join(&Error{Refusal: Link, Detail: "it was replaced"}, next.Close())
	}
	return next, nil
}

// CheckVisible returns an *Error with the Refusal Hidden if an element of a relative path begins with a dot.
func CheckVisible(path string) error {
	if slices.ContainsFunc(strings.Split(filepath.Clean(path), string(filepath.Separator)), hidden) {
		return &Error{Refusal: Hidden}
	}
	return nil
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") && name != "." }
