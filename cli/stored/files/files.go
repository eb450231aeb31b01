// Package files finds the newest files of an agent's sessions, and reads their beginnings and ends. It runs where the files are: in
// ductor on this machine, and in a container as a part of ductor-runner. It knows no agent's format and imports nothing of ours.
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

// Verb is the first argument of a program that is to run this package. A Query as JSON follows.
const Verb = "session-files"

// Query says which files are wanted.
type Query struct {
	// Homes are where the agent may keep what it keeps: the name of a variable, and what is below the directory that it names
	// ("HOME/.claude"). The first whose variable is set counts.
	Homes []string
	Globs []string // below that; * stands for any name in one directory
	Has   string   // the first bytes of a file hold it; empty for all files
	Most  int      // files, the newest
}

// File is a file with its beginning and its end. Tail is empty for a file that Head has whole.
type File struct {
	Name       string
	Used       time.Time
	Head, Tail []byte
}

// Bounds of Find. What an agent put into its home costs no more than that.
const (
	entriesMost = 50_000 // looked at, directories included
	opensMost   = 5_000
	firstBytes  = 4 << 10 // that must hold Has
	headBytes   = 96 << 10
	tailBytes   = 64 << 10
)

// Answer is what Main prints, as one line of JSON.
type Answer struct {
	Files []File `json:"files,omitempty"`
	Error string `json:"error,omitempty"`
}

// Main answers the query in args about the home that the environment names, and returns an exit code.
func Main(args []string, out io.Writer) int {
	var q Query
	var answer Answer
	err := errors.New("there is no query")
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

// Find finds the newest files that q wants. env says where homes are. It follows no link, waits for no pipe, and a home that is not
// there has no files.
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
		w.into(".", strings.Split(glob, "/"))
	}
	slices.SortFunc(w.found, func(a, b found) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(b.name, a.name)) })
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

// home is the directory that the agent keeps its files in; empty if no variable names one.
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

// walk finds files by patterns.
type walk struct {
	root  *os.Root
	left  int // entries that may still be looked at
	found []found
}

// into looks in dir for what fits the first of parts, and below it for the others. What cannot be read is passed over.
func (w *walk) into(dir string, parts []string) {
	if !strings.Contains(parts[0], "*") && len(parts) > 1 {
		w.into(path.Join(dir, parts[0]), parts[1:])
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
			fits, _ := path.Match(parts[0], e.Name()) // a pattern that is none fits nothing
			switch {
			case !fits:
			case len(parts) > 1 && e.IsDir():
				w.into(path.Join(dir, e.Name()), parts[1:])
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

// read reads a file that still is one and begins with what it must have.
func read(root *os.Root, f found, has string) (File, bool) {
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
	if !bytes.Contains(head, []byte(has)) {
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
	n, _ := f.ReadAt(buf, from) // what cannot be read is not there
	return buf[:n]
}
