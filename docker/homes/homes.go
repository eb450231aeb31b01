// Package homes creates, lists and removes the homes of sessions inside a container. Package docker uses it through
// ductor-runner, because an image need not contain a shell. Package homes runs as the agents' user. It must not be used
// on the host.
package homes

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// Verb is the first argument of ductor-runner for this package. The arguments of Main follow it.
const Verb = "homes"

// Actions of Main.
const (
	Make   = "make"
	List   = "list"
	Forget = "forget"
)

// MaxBytes limits the total size of the files in an archive.
const MaxBytes = 64 << 20

// Home is an existing home.
type Home struct {
	Name  string    `json:"name"`
	Used  time.Time `json:"used"`  // when something in the home last changed
	Bytes int64     `json:"bytes"` // total size of its files
}

// Answer is the output of Main, as one line of JSON.
type Answer struct {
	Homes []Home          `json:"homes,omitempty"`
	Files json.RawMessage `json:"files,omitempty"` // only for docker.Launcher.Help; Main does not set it
	Error string          `json:"error,omitempty"`
}

// Main runs an action, prints an Answer and returns the exit code. args contains the directory of all homes, the action
// and, except for List, the name of a home. For Make, input is a tar archive to extract into the home.
func Main(args []string, input io.Reader, out io.Writer) int {
	var answer Answer
	all, err := runAction(args, input)
	if answer.Homes = all; err != nil {
		answer.Error = err.Error()
	}
	if json.NewEncoder(out).Encode(answer) != nil || err != nil {
		return 1
	}
	return 0
}

func runAction(args []string, in io.Reader) ([]Home, error) {
	if len(args) < 2 {
		return nil, errors.New("no directory and no order were given")
	}
	if err := os.MkdirAll(args[0], 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(args[0])
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if args[1] == List {
		return list(root)
	}
	if len(args) != 3 || args[2] == "." || path.Base(args[2]) != args[2] {
		return nil, fmt.Errorf("%q names no home", args[2:])
	}
	switch args[1] {
	case Make:
		return nil, create(root, args[2], in)
	case Forget:
		return nil, root.RemoveAll(args[2])
	}
	return nil, fmt.Errorf("there is no verb %q", args[1])
}

func list(root *os.Root) ([]Home, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var all []Home
	for _, entry := range entries {
		if entry.IsDir() {
			all = append(all, measure(root, entry.Name()))
		}
	}
	return all, nil
}

// measure returns the size and the last change of a home. It skips files that it cannot inspect, because they may be
// changing.
func measure(root *os.Root, name string) Home {
	home := Home{Name: name}
	_ = fs.WalkDir(root.FS(), name, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if info.Mode().IsRegular() {
			home.Bytes += info.Size()
		}
		if info.ModTime().After(home.Used) {
			home.Used = info.ModTime()
		}
		return nil
	})
	return home
}

// create creates a home if needed, and extracts the files in an archive that are newer than those in the home. Whatever
// the archive and the home contain, create changes nothing outside of the home.
func create(all *os.Root, name string, in io.Reader) error {
	if err := all.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	home, err := all.OpenRoot(name)
	if err != nil {
		return err
	}
	defer home.Close()
	left := int64(MaxBytes)
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue // putFile creates a file's directory
		}
		// Limit the sizes in the headers, because a small archive can describe large sparse files.
		if left -= h.Size; left < 0 {
			return fmt.Errorf("the files are more than %d MB", MaxBytes>>20)
		}
		if err := putFile(home, h, archive); err != nil {
			return fmt.Errorf("put %s there: %w", h.Name, err)
		}
	}
}

// putFile writes a file, unless the existing file has the same or a later modification time. It replaces the file
// atomically, because an agent may be reading it.
func putFile(home *os.Root, h *tar.Header, content io.Reader) error {
	if info, err := home.Stat(h.Name); err == nil && !info.ModTime().Before(h.ModTime) {
		return nil
	}
	if err := home.MkdirAll(path.Dir(h.Name), 0o700); err != nil {
		return err
	}
	temp := fmt.Sprintf("%s.ductor-new-%d", h.Name, os.Getpid())
	if err := home.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := home.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(h.Mode).Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = home.Chtimes(temp, h.ModTime, h.ModTime)
	}
	if err != nil {
		return errors.Join(err, home.Remove(temp))
	}
	return home.Rename(temp, h.Name)
}
