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

// note is a file in Options.Dir about a container.
type note struct {
	Name      string    `json:"name,omitempty"`      // name of the sandbox
	Container string    `json:"container,omitempty"` // ID of the container; empty if there is none
	Used      time.Time `json:"used,omitzero"`       // when a program was last started, rounded to useStep
	// Failed is the reason why ductor could not make the image. It is empty if the last attempt succeeded.
	Failed string `json:"failed,omitempty"`
}

// useStep is the precision of note.Used. With a higher precision, ductor would have to write the note too often.
const useStep = 10 * time.Minute

// notebook reads and writes the note about a container. Safe for concurrent use.
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

// Noted returns the names of an owner's sandboxes that have a container, as far as this machine knows. dir is
// Options.Dir.
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

// usedAt returns the time at which a program was last started in a container. It returns zero if that time is unknown.
func usedAt(dir, name string) time.Time {
	b := &notebook{path: filepath.Join(dir, name+".json")}
	n, _ := b.read() // n is zero if the note cannot be read
	return n.Used
}

// recordUse records the time at which a program was started. It does nothing if there is no note of the container, or
// if the recorded time is more recent than useStep.
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

// write replaces the note. If n.Used is zero, it keeps the old value.
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
