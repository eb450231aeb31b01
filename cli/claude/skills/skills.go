// Package skills finds the files that define a skill of Claude. It runs where the files are: in ductor on this machine,
// and in ductor-runner in a container. It imports no other package of ductor.
package skills

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Verb is the first argument with which ductor-runner runs Main. The next arguments are the directory and the name for
// Find.
const Verb = "skill-files"

// File is a file that defines a skill.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Answer is the output of Main, as one line of JSON.
type Answer struct {
	Files []File `json:"files,omitempty"`
	Error string `json:"error,omitempty"`
}

// Main runs Find for the directory and the skill in args, and writes the Answer to out. It returns the exit code.
func Main(args []string, out io.Writer) int {
	var answer Answer
	err := errors.New("want two arguments: a directory and a skill")
	if len(args) == 2 {
		answer.Files, err = Find(os.Getenv, args[0], args[1])
	}
	if err != nil {
		answer = Answer{Error: err.Error()}
	}
	if json.NewEncoder(out).Encode(answer) != nil || err != nil {
		return 1
	}
	return 0
}

// Limits of Find.
const (
	mostEntries = 20_000 // files and directories that the search visits
	mostDepth   = 9
	mostBytes   = 128 << 10 // maximum size of a file
)

// Find returns the files that may define the skill or command with the given name. It searches the user's directories
// and the plugins, and also dir and its parents if dir is not empty. The caller passes the working directory as dir if
// Claude uses the settings of the project. A file can also set the name in its front matter. If several files match,
// Find returns all of them, because Claude's choice is unknown. It returns an error if it cannot read a matching file
// completely.
//
// Find follows links in the user's directories. Projects and plugins come from others, who could use a link to show a
// private file of the user in a chat. Find therefore returns an error if a matching file of a project is outside of the
// directory that contains .claude, or if a matching file of a plugin is outside of the directory of all plugins.
func Find(getenv func(string) string, dir, name string) ([]File, error) {
	s := search{name: strings.TrimPrefix(strings.TrimSpace(name), "/"), left: mostEntries}
	if s.name == "" {
		return nil, errors.New("the skill has no name")
	}
	s.last = s.name[strings.LastIndexByte(s.name, ':')+1:]
	config := cmp.Or(getenv("CLAUDE_CONFIG_DIR"), filepath.Join(getenv("HOME"), ".claude"))
	homes := []string{config, "/etc/claude-code/.claude"}
	for _, home := range homes {
		s.searchHome(home)
	}
	for at := filepath.Clean(dir); dir != ""; at = filepath.Dir(at) {
		if home := filepath.Join(at, ".claude"); !slices.Contains(homes, home) {
			s.within(at, func() { s.searchHome(home) })
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	plugins := filepath.Join(config, "plugins")
	s.within(plugins, func() { s.searchBelow(plugins, mostDepth) })
	return s.found, s.err
}

type search struct {
	name, last string // the full name, and the part after its last colon
	left       int
	root       *os.Root // the directory that a matching file must be in; nil for any
	found      []File
	err        error // the first error
}

// within calls f. All matching files that f finds must be below dir.
func (s *search) within(dir string, f func()) {
	root, err := os.OpenRoot(dir)
	if err != nil { // a directory that ductor cannot open is unreadable for Claude, too
		return
	}
	defer root.Close()
	s.root = root
	defer func() { s.root = nil }()
	f()
}

func (s *search) searchHome(home string) {
	for _, in := range []string{"skills", "commands"} {
		s.searchBelow(filepath.Join(home, in), mostDepth)
	}
}

// searchBelow searches for the skill in the Markdown files below a directory.
func (s *search) searchBelow(dir string, depth int) {
	entries, _ := os.ReadDir(dir) // an unreadable directory is unreadable for Claude, too
	if s.left -= len(entries); s.left < 0 || depth == 0 {
		s.err = cmp.Or(s.err, errors.New("too many files"))
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch {
		case err != nil || e.Name() == ".git" || e.Name() == "node_modules":
		case info.IsDir():
			s.searchBelow(path, depth-1)
		case strings.EqualFold(filepath.Ext(path), ".md"):
			s.consider(path)
		}
	}
}

// consider adds the file to s.found if its name, or the name in its text, matches the skill.
func (s *search) consider(path string) {
	label := filepath.Base(path)
	label = strings.TrimSuffix(label, filepath.Ext(label))
	if strings.EqualFold(label, "skill") {
		label = filepath.Base(filepath.Dir(path))
	}
	text, err := read(os.OpenFile, path)
	if own := ownName(text); label != s.last && own != s.name && own != s.last {
		return
	}
	if s.root != nil {
		var below string
		if below, err = filepath.Rel(s.root.Name(), path); err == nil {
			text, err = read(s.root.OpenFile, below)
		}
	}
	switch {
	case err != nil:
		s.err = cmp.Or(s.err, fmt.Errorf("read %s: %w", path, err))
	default:
		s.found = append(s.found, File{Name: path, Text: text})
	}
}

func read(open func(string, int, os.FileMode) (*os.File, error), path string) (string, error) {
	f, err := open(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // otherwise, opening a pipe would block
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", cmp.Or(err, errors.New("not a regular file"))
	}
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = errors.New("it is too long")
	}
	return string(text), err
}

var nameLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*["']?name["']?\s*:\s*(.*)$`) })

// ownName returns the name in a file's front matter, or "".
func ownName(text string) string {
	text, begins := strings.CutPrefix(strings.TrimPrefix(text, "\ufeff"), "---")
	head, _, ends := strings.Cut(text, "\n---")
	if !begins || !ends {
		return ""
	}
	if m := nameLine().FindStringSubmatch(head); m != nil {
		return strings.Trim(strings.TrimSpace(m[1]), `"'`)
	}
	return ""
}

var inlineShell = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("!`([^`]+)`|(?s:```!\\s*\n?(.*?)```)")
})

// Commands returns the shell commands in a skill's text that run as soon as the agent uses the skill.
func Commands(text string) (all []string) {
	for _, m := range inlineShell().FindAllStringSubmatch(text, -1) {
		all = append(all, strings.TrimSpace(m[1]+m[2]))
	}
	return all
}
