// Package skills finds the files that define a skill of Claude: it runs where the files are, in ductor on this machine, and in a
// container as a part of ductor-runner. It imports nothing of ours.
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
)

// Verb is the first argument that makes ductor-runner look for a skill. A working directory and the name of the skill follow.
const Verb = "skill-files"

// File is a file that defines a skill.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Answer is what Main prints, as one line of JSON.
type Answer struct {
	Files []File `json:"files,omitempty"`
	Error string `json:"error,omitempty"`
}

// Main looks for the skill in args, and returns an exit code.
func Main(args []string, out io.Writer) int {
	var answer Answer
	err := errors.New("a directory and a skill are to be named")
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

// Bounds of Find.
const (
	mostEntries = 20_000 // looked at
	mostDepth   = 9
	mostBytes   = 128 << 10 // of one file
)

// Find finds the files that can be what Claude calls a skill by name, in a process with that environment: those of the user, of
// plugins, and of a directory and all above it. A command is a skill, and a file can name itself in its front matter. Where
// several files fit, Claude uses one of them. Find follows links, and fails if a file that fits cannot be read whole.
func Find(getenv func(string) string, dir, name string) ([]File, error) {
	config := cmp.Or(getenv("CLAUDE_CONFIG_DIR"), filepath.Join(getenv("HOME"), ".claude"))
	homes := []string{config, "/etc/claude-code/.claude"}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if own := filepath.Join(at, ".claude"); !slices.Contains(homes, own) {
			homes = append(homes, own)
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	s := search{name: strings.TrimPrefix(strings.TrimSpace(name), "/"), left: mostEntries}
	if s.name == "" {
		return nil, errors.New("the skill has no name")
	}
	s.last = s.name[strings.LastIndexByte(s.name, ':')+1:]
	for _, home := range homes {
		for _, in := range []string{"skills", "commands"} {
			s.into(filepath.Join(home, in), mostDepth)
		}
	}
	s.into(filepath.Join(config, "plugins"), mostDepth)
	return s.found, s.err
}

type search struct {
	name, last string // whole, and without what stands before its last colon
	left       int
	found      []File
	err        error // the first
}

// into looks at the Markdown files in a directory and below it.
func (s *search) into(dir string, depth int) {
	entries, _ := os.ReadDir(dir) // what Claude cannot read either is no skill
	if s.left -= len(entries); s.left < 0 || depth == 0 {
		s.err = cmp.Or(s.err, errors.New("there are too many files"))
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch {
		case err != nil || e.Name() == ".git" || e.Name() == "node_modules":
		case info.IsDir():
			s.into(path, depth-1)
		case strings.EqualFold(filepath.Ext(path), ".md"):
			s.consider(path, info)
		}
	}
}

// consider takes a file that fits.
func (s *search) consider(path string, info os.FileInfo) {
	label := filepath.Base(path)
	label = strings.TrimSuffix(label, filepath.Ext(label))
	if strings.EqualFold(label, "skill") {
		label = filepath.Base(filepath.Dir(path))
	}
	text, err := read(path, info)
	own := ownName(text)
	switch fits := label == s.last || own == s.name || own == s.last; {
	case !fits:
	case err != nil:
		s.err = cmp.Or(s.err, fmt.Errorf("read %s: %w", path, err))
	default:
		s.found = append(s.found, File{Name: path, Text: text})
	}
}

func read(path string, info os.FileInfo) (string, error) {
	if !info.Mode().IsRegular() { // a pipe would be waited for
		return "", errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = errors.New("it is too long")
	}
	return string(text), err
}

var nameLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*["']?name["']?\s*:\s*(.*)$`) })

// ownName is the name that the front matter of a file gives it.
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

var inlineShell = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("!`([^`]+)`|(?s:```!\\s*\n?(.*?)```)") })

// Commands are what a shell runs when a skill with that text is used.
func Commands(text string) (all []string) {
	for _, m := range inlineShell().FindAllStringSubmatch(text, -1) {
		all = append(all, strings.TrimSpace(m[1]+m[2]))
	}
	return all
}
