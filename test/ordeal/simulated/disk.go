package simulated

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// disk is the state directory, of which a copy is taken at the moment of ductor's death.
type disk struct{ dir, copy string }

// freeze copies the directory as a process that is killed now would leave it.
func (d *disk) freeze() {
	if err := copyDir(d.dir, d.copy); err != nil {
		panic(fmt.Sprintf("copy the state of ductor: %v", err)) // there is no test to fail in this goroutine
	}
}

// thaw puts the copy back.
func (d *disk) thaw() error {
	if err := os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("remove what a dead ductor wrote: %w", err)
	}
	if err := os.Rename(d.copy, d.dir); err != nil {
		return fmt.Errorf("put back the state of a dead ductor: %w", err)
	}
	return nil
}

// copyDir copies files and directories.
func copyDir(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case !e.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}
