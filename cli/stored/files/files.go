// Package files finds the newest session files of an agent, and reads their beginnings and ends. It runs where the
// files are: in ductor on this machine, and in ductor-runner in a container. It does not interpret the files, and
// imports no other package of ductor.
package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Verb is the first argument with which ductor-runner runs Main. The next argument is a Query in JSON.
const Verb = "session-files"

// Query selects files.
type Query struct {
	// Homes lists directories in which the agent may store its files. Each entry is the name of a variable and a path
	// below the variable's value, such as "HOME/.claude". Find uses the first entry whose variable is set.
	Homes []string
	Globs []string // patterns of paths below the agent's directory; * matches any part of a name
	Has   string   // text that the first bytes of a file must contain; empty for all files
	Most  int      // maximum number of files, the newest first
}

// File is a session file. Tail is empty if Head contains the whole file.
type File struct {
	Name       string
	Used       time.Time
	Head, Tail []byte
}

// Limits of Find. They are necessary because an agent may put anything into its directory.
const (
	entriesMost = 50_000 // files and directories that the search visits
	opensMost   = 5_000
	firstBytes  = 4 << 10 // bytes at the start of a file, in which Query.Has must occur
	headBytes   = 96 << 10
	tailBytes   = 64 << 10
)

// Answer is the output of Main, as one line of JSON.
type Answer struct {
	Files []File `json:"files,omitempty"`
	Error string `json:"error,omitempty"`
}

// Main runs Find for the Query in args and writes the Answer to out. It returns the exit code.
func Main(args []string, out io.Writer) int {
	var q Query
	var answer Answer
	err := errors.New("want one argument: a query")
	if len(args) == 1 {
		err = json.Unmarshal([]byte(args[0]), &q)
	}
	if err == nil {
		answer.Files, err = Find(context.Background(), os.Environ(), q)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	if json.NewEncoder(out).Encode(answer) != nil || err != nil {
		return 1
	}
	return 0
}

// Find returns the newest files that match q. env contains the variables in q.Homes. Find follows no links and does not
// block on named pipes. If the agent's directory does not exist, it returns no files.
func Find(ctx context.Context, env []string, q Query) ([]File, error) {
	dir := q.home(env)
	if dir == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open an agent's home: %w", err)
	}
	defer root.Close()
	w := walk{root: root, left: entriesMost}
	for _, glob := range q.Globs {
		w.searchBelow(".", strings.Split(glob, "/"))
	}
	slices.SortFunc(w.found, func(a, b found) int {
		return cmp.Or(b.used.Compare(a.used), cmp.Compare(b.name, a.name))
	})
	var out []File
	for _, f := range w.found[:min(len(w.found), opensMost)] {
		if ctx.Err() != nil || len(out) == q.Most {
			break
		}
		if file, ok := read(root, f, q.Has); ok {
			out = append(out, file)
		}
	}
	return out, context.Cause(ctx)
}

// home returns the agent's directory, or "" if none of the variables is set.
func (q Query) home(env []string) string {
	for _, h := range q.Homes {
		name, below, _ := strings.Cut(h, "/")
		for _, entry := range slices.Backward(env) {
			if value, ok := strings.CutPrefix(entry, name+"="); ok && filepath.IsAbs(value) {
				return filepath.Join(value, filepath.FromSlash(below))
			}
		}
	}
	return ""
}

type found struct {
	name string
	used time.Time
}

type walk struct {
	root  *os.Root
	left  int // files and directories that the search may still visit
	found []found
}

// searchBelow finds the files below dir whose paths match a pattern. parts contains the pattern's names, which slashes
// separate. searchBelow skips files that it cannot read.
func (w *walk) searchBelow(dir string, parts []string) {
	if !strings.Contains(parts[0], "*") && len(parts) > 1 {
		w.searchBelow(path.Join(dir, parts[0]), parts[1:])
		return
	}
	d, err := w.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer d.Close()
	for w.left > 0 {
		entries, err := d.ReadDir(min(w.left, 500))
		w.left -= len(entries)
		for _, e := range entries {
			fits, _ := path.Match(parts[0], e.Name()) // an invalid pattern matches nothing
			switch {
			case !fits:
			case len(parts) > 1 && e.IsDir():
				w.searchBelow(path.Join(dir, e.Name()), parts[1:])
			case len(parts) == 1 && e.Type().IsRegular():
				if info, err := e.Info(); err == nil {
					w.found = append(w.found, found{path.Join(dir, e.Name()), info.ModTime()})
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// read reads a file. It returns false if the file is no longer regular, or if its beginning does not contain the
// required text.
func read(root *os.Root, f found, required string) (File, bool) {
	file, err := root.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return File{}, false
	}
	head := part(file, 0, firstBytes)
	if !bytes.Contains(head, []byte(required)) {
		return File{}, false
	}
	head = append(head, part(file, int64(len(head)), headBytes-len(head))...)
	out := File{Name: f.name, Used: f.used, Head: head}
	if from := max(int64(len(head)), info.Size()-tailBytes); from < info.Size() {
		out.Tail = part(file, from, tailBytes)
	}
	return out, true
}

func part(f io.ReaderAt, from int64, most int) []byte {
	buf := make([]byte, most)
	n, _ := f.ReadAt(buf, from) // after an error, n is smaller
	return buf[:n]
}
