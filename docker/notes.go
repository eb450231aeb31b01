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

// note is what this machine remembers of a container.
type note struct {
	Name      string    `json:"name,omitempty"`      // of the sandbox
	Container string    `json:"container,omitempty"` // its id; empty while there is none
	Used      time.Time `json:"used,omitzero"`       // when something was started in it last, more or less
	Failed    string    `json:"failed,omitempty"`    // why its image could not be made the last time; empty if it could
}

// useStep is how exactly the last use is recorded.
const useStep = 10 * time.Minute

// notebook is a file with a note. Safe for concurrent use.
type notebook struct {
	mu   sync.Mutex
	path string
	name string // of the sandbox
}

func openNotebook(dir string, o Options) (*notebook, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for notes: %w", err)
	}
	return &notebook{path: filepath.Join(dir, o.containerName()+".json"), name: o.Name}, nil
}

// read gives the note; what cannot be read remembers nothing.
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
		return fmt.Errorf("forget a container: %w", err)
	}
	return nil
}

// Noted are the names of an owner's sandboxes of which dir has notes that there is a container. dir is Options.Dir.
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

// usedAt is when something was started in a container last; zero if that is not known.
func usedAt(dir, name string) time.Time {
	b := &notebook{path: filepath.Join(dir, name+".json")}
	n, _ := b.read() // what cannot be read is not known
	return n.Used
}

// used notes that something is started now. A note that is not there stays so.
func (b *notebook) used(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, known := b.load()
	if !known || now.Sub(n.Used).Abs() < useStep {
		return nil
	}
	n.Used = now
	return b.store(n)
}

// failed notes how the making of the image ended.
func (b *notebook) failed(err error) error {
	text := ""
	if err != nil {
		text = err.Error()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n, _ := b.load() // what cannot be read remembers nothing
	if n.Failed == text {
		return nil
	}
	n.Failed = text
	return b.store(n)
}

// write replaces the note as a whole, but for the last use when the new one does not know it.
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
		return fmt.Errorf("note what container there is: %w", err)
	}
	return nil
}
