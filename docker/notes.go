package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ductor/internal/rooted"
)

// note is this machine's note about a container.
type note struct {
	Name      string    `json:"name,omitempty"`      // name of the sandbox
	Container string    `json:"container,omitempty"` // ID; empty if there is no container
	Used      time.Time `json:"used,omitzero"`       // approximate time of the last start of a program
	// Failed is the reason why the last attempt to make the image failed. It is empty if it succeeded.
	Failed string `json:"failed,omitempty"`
}

// useStep is the precision of note.Used.
const useStep = 10 * time.Minute

// notebook stores a note in a file. Safe for concurrent use.
type notebook struct {
	mu   sync.Mutex
	path string
	name string // name of the sandbox
}

func openNotebook(dir string, o Options) (*notebook, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create a directory for notes: %w", err)
	}
	return &notebook{path: filepath.Join(dir, o.containerName()+".json"), name: o.Name}, nil
}

// read returns the note. It returns false if the note cannot be read.
func (b *notebook) read() (note, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.load()
}

func (b *notebook) load() (note, bool) {
	var n note
	raw, err := os.ReadFile(b.path)
	return n, err == nil && json.Unmarshal(raw, &n) == nil
}

// forget removes the note.
func (b *notebook) forget() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := os.Remove(b.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the note of a container: %w", err)
	}
	return nil
}

// Noted returns the names of an owner's sandboxes with a container, according to the notes in dir. dir is Options.Dir.
func Noted(dir, owner string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, Options{Owner: owner}.prefix()+"*.json"))
	for _, file := range files {
		b := &notebook{path: file}
		if n, known := b.read(); known && n.Container != "" && n.Name != "" {
			names = append(names, n.Name)
		}
	}
	return names, err
}

// usedAt returns the time of the last start of a program in a container, or zero if it is unknown.
func usedAt(dir, name string) time.Time {
	b := &notebook{path: filepath.Join(dir, name+".json")}
	n, _ := b.read() // zero if it cannot be read
	return n.Used
}

// recordUse records the start of a program. It creates no note.
func (b *notebook) recordUse(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, known := b.load()
	if !known || now.Sub(n.Used).Abs() < useStep {
		return nil
	}
	n.Used = now
	return b.store(n)
}

// recordImageResult records the result of making the image.
func (b *notebook) recordImageResult(err error) error {
	text := ""
	if err != nil {
		text = err.Error()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n, _ := b.load() // an unreadable note counts as none
	if n.Failed == text {
		return nil
	}
	n.Failed = text
	return b.store(n)
}

// write replaces the note. If the new note has no time of use, it keeps the old time.
func (b *notebook) write(n note) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.Used.IsZero() {
		old, _ := b.load()
		n.Used = old.Used
	}
	return b.store(n)
}

func (b *notebook) store(n note) error {
	n.Name = b.name
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := rooted.ReplaceFile(b.path, raw, nil); err != nil {
		return fmt.Errorf("store the note of a container: %w", err)
	}
	return nil
}
