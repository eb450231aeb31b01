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

// note is the data about a container that this machine stores.
type note struct {
	Name      string    `json:"name,omitempty"`      // of the sandbox
	Container string    `json:"container,omitempty"` // ID; empty if there is no container
	Used      time.Time `json:"used,omitzero"`       // approximate time of the last start of a program
	// why the last attempt to make the image failed; empty if it succeeded
	Failed string `json:"failed,omitempty"`
}

// useStep is the precision with which the last use is recorded.
const useStep = 10 * time.Minute

// notebook stores a note in a file. Safe for concurrent use.
type notebook struct {
	mu   sync.Mutex
	path string
	name string // of the sandbox
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

// Noted returns the names of an owner's sandboxes for which dir has notes about a container. dir is Options.Dir.
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

// usedAt returns when something was last started in a container. It returns zero if that is unknown.
func usedAt(dir, name string) time.Time {
	b := &notebook{path: filepath.Join(dir, name+".json")}
	n, _ := b.read() // zero if it cannot be read
	return n.Used
}

// recordUse records that something is started now. It does not create a missing note.
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

// write replaces the note. If the new one has no time of use, it keeps the old one's.
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
