package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// store contains sessions, each in a file of JSON lines.
type store struct{ root string }

type entry struct {
	Prompt string `json:"prompt"`
	Dir    string `json:"dir"`
	Tokens tokens `json:"tokens"`
}

type tokens struct {
	Input     int64 `json:"in"`
	Cached    int64 `json:"cached"`
	Output    int64 `json:"out"`
	Reasoning int64 `json:"reasoning"`
}

func (t tokens) plus(u tokens) tokens {
	return tokens{t.Input + u.Input, t.Cached + u.Cached, t.Output + u.Output, t.Reasoning + u.Reasoning}
}

// slug turns the path of a working directory into a name for a directory, in the same way as Claude.
func slug(dir string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, dir)
}

func (s store) path(folder, id string) string {
	return filepath.Join(s.root, folder, slug(id)+".jsonl")
}

func (s store) has(folder, id string) bool {
	_, err := os.Stat(s.path(folder, id))
	return err == nil
}

// add appends a turn to a session. It creates the session if necessary.
func (s store) add(folder, id string, e entry) error {
	path := s.path(folder, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep session: %w", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep session: %w", err)
	}
	_, err = f.Write(append(appendJSON(nil, e), '\n'))
	return errors.Join(err, f.Close())
}

// begin creates an empty session if necessary.
func (s store) begin(folder, id string) error {
	path := s.path(folder, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("begin session: %w", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("begin session: %w", err)
	}
	return f.Close()
}

// read returns the turns of a session. It skips invalid lines. For an unknown session, the result is empty.
func (s store) read(folder, id string) []entry {
	b, err := os.ReadFile(s.path(folder, id))
	if err != nil {
		return nil
	}
	var all []entry
	sc := bufio.NewScanner(strings.NewReader(string(b)))
	sc.Buffer(nil, len(b)+1)
	for sc.Scan() {
		var e entry
		if json.Unmarshal(sc.Bytes(), &e) == nil {
			all = append(all, e)
		}
	}
	return all
}
