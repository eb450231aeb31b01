package docker

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// note is what this machine remembers of a container: since when nothing that ran in it can have been forgotten.
type note struct {
	Container string    `json:"container,omitempty"` // its id; empty while there is none
	Since     time.Time `json:"since"`
}

// notebook is a file with a note. Safe for concurrent use.
type notebook struct {
	mu   sync.Mutex
	path string
}

func openNotebook(dir, name string) (*notebook, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for notes: %w", err)
	}
	return &notebook{path: filepath.Join(dir, name+".json")}, nil
}

// read gives the note; what cannot be read remembers nothing.
func (b *notebook) read() (note, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n note
	raw, err := os.ReadFile(b.path)
	return n, err == nil && json.Unmarshal(raw, &n) == nil
}

// write replaces the note as a whole.
func (b *notebook) write(n note) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	temp := b.path + ".new"
	if err := os.WriteFile(temp, raw, 0o600); err != nil {
		return fmt.Errorf("note what container there is: %w", err)
	}
	if err := os.Rename(temp, b.path); err != nil {
		return fmt.Errorf("note what container there is: %w", err)
	}
	return nil
}
