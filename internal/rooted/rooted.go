// Package rooted reads, lists and writes files below a directory that others may change at any moment. It follows no link,
// opens nothing but regular files and directories, and passes over what is hidden.
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

// Refusal says why a file is not given, or not taken.
type Refusal string

// The refusals.
const (
	NotThere  Refusal = "not-there"
	Hidden    Refusal = "hidden"    // its name, or that of a directory above it, begins with a dot
	Link      Refusal = "link"      // it is a symbolic link, or stands behind one
	HardLink  Refusal = "hard-link" // it has another name, which may be that of a file outside
	Special   Refusal = "special"   // it is a device, a pipe or a socket
	Directory Refusal = "directory" // it is a directory, where a file is wanted
	NoFolder  Refusal = "no-folder" // it is no directory, where one is wanted
	Empty     Refusal = "empty"
	TooLarge  Refusal = "too-large"
	Exists    Refusal = "exists"
	Failed    Refusal = "failed" // the operating system refuses
)

// Error says why a file is refused.
type Error struct {
	Refusal Refusal `json:"refusal"`
	Size    int64   `json:"size,omitempty"` // of a file that is too large
	Detail  string  `json:"detail,omitempty"`
}

func (e *Error) Error() string {
	return strings.TrimSpace(string(e.Refusal) + " " + e.Detail)
}

// refused translates an error of the operating system.
func refused(err error) *Error {
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

// Entry is a file or a directory in a directory.
type Entry struct {
	Name string `json:"name"`
	Dir  bool   `json:"dir,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// Read gives the content of a file below a directory, which has at most so many bytes. It reads the file once. The error is
// an *Error.
func Read(dir, below string, most int64) ([]byte, error) {
	folder, name, err := enter(dir, below)
	if err != nil {
		return nil, refused(err)
	}
	defer folder.Close()
	content, err := read(folder, name, most)
	if err != nil {
		return nil, refused(err)
	}
	return content, nil
}

func read(folder *os.Root, name string, most int64) ([]byte, error) {
	named, err := folder.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := regular(named); err != nil {
		return nil, err
	}
	if named.Size() > most { // not opened: closing ductor's own database would give up SQLite's locks on it
		return nil, &Error{Refusal: TooLarge, Size: named.Size()}
	}
	// What was swapped in since must not keep us waiting, as a pipe would.
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
	case info.Size() > most:
		return nil, &Error{Refusal: TooLarge, Size: info.Size()}
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Nlink != 1 {
		return nil, &Error{Refusal: HardLink}
	}
	content := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	switch n, err := content.ReadFrom(io.LimitReader(f, most+1)); {
	case err != nil:
		return nil, err
	case n > most:
		return nil, &Error{Refusal: TooLarge, Size: n}
	case n == 0:
		return nil, &Error{Refusal: Empty}
	}
	return content.Bytes(), nil
}

// regular says what is wrong with anything but a regular file.
func regular(info fs.FileInfo) error {
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

// MostEntries is how many entries List looks at in a directory; of more it is not said which.
const MostEntries = 900

// List gives the files and directories in a directory below another, directories first. Links, special files and what is
// hidden are left out. The error is an *Error.
func List(dir, below string) ([]Entry, error) {
	folder, _, err := enter(dir, filepath.Join(below, "x"))
	if err != nil {
		return nil, refused(err)
	}
	defer folder.Close()
	f, err := folder.Open(".")
	if err != nil {
		return nil, refused(err)
	}
	defer f.Close()
	found, err := f.ReadDir(MostEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, refused(err)
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

// Write makes a file below a directory, whole or not at all. A file that is there stays: Exists. The error is an *Error.
func Write(dir, below string, content []byte) error {
	folder, name, err := enter(dir, below)
	if err != nil {
		return refused(err)
	}
	defer folder.Close()
	if err := write(folder, name, content); err != nil {
		return refused(err)
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
	defer folder.Remove(part) // it has another name, too, if all went well
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := folder.Link(part, name); err != nil { // there is such a file now
		return err
	}
	return Sync(folder)
}

// enter opens the directory that a path below dir is in, step by step, and gives the last name of the path.
func enter(dir, below string) (*os.Root, string, error) {
	below = filepath.Clean(below)
	if !filepath.IsLocal(below) {
		return nil, "", &Error{Refusal: NotThere}
	}
	at, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	steps := strings.Split(below, string(filepath.Separator))
	if slices.ContainsFunc(steps, hidden) {
		return nil, "", errors.Join(&Error{Refusal: Hidden}, at.Close())
	}
	last := len(steps) - 1
	for _, step := range steps[:last] {
		next, err := descend(at, step)
		if err = errors.Join(err, at.Close()); err != nil {
			return nil, "", err
		}
		at = next
	}
	return at, steps[last], nil
}

// descend opens a directory in another, but no link to one.
func descend(at *os.Root, step string) (*os.Root, error) {
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

// hidden says whether a name is one that lists leave out. The name of the directory itself is none.
func hidden(name string) bool { return strings.HasPrefix(name, ".") && name != "." }
