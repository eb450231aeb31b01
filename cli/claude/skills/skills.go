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
)

// Verb is the first argument with which ductor-runner runs Main. The next arguments are the working directory and the
// skill's name.
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

// Find returns the files that may define the skill with the given name. It searches the user's directories, the
// plugins, dir and the parents of dir. It includes commands, and files that set their name in the front matter. If
// several files match, Find returns all of them, because Claude's choice is unknown. Find follows links. It returns an
// error if it cannot read a matching file completely.
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
			s.searchBelow(filepath.Join(home, in), mostDepth)
		}
	}
	s.searchBelow(filepath.Join(config, "plugins"), mostDepth)
	return s.found, s.err
}

type search struct {
	name, last string // the full name, and the part after its last colon
	left       int
	found      []File
	err        error // the first error
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
			s.consider(path, info)
		}
	}
}

// consider adds the file to s.found if its name, or the name in its text, matches the skill.
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
	if !info.Mode().IsRegular() { // opening a pipe would block
		return "", errors.New("not a regular file")
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
