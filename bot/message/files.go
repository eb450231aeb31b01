package message

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"ductor/internal/rooted"
	"ductor/orchestrator"
)

// Spool is a directory with files that are waiting to be sent. It contains copies, so that later changes of a file do
// not change the content that users get.
type Spool struct{ root *os.Root }

// OpenSpool opens the spool in dir, which it creates if necessary. It deletes files that belong to no message in the
// database.
func OpenSpool(ctx context.Context, dir string, store orchestrator.MessageStore) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of files to be sent: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the directory of files to be sent: %w", err)
	}
	s := &Spool{root}
	if err := s.tidy(ctx, store); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

func (s *Spool) tidy(ctx context.Context, store orchestrator.MessageStore) error {
	rows, err := store.OwedMessages(ctx)
	if err != nil {
		return fmt.Errorf("list messages: %w", err)
	}
	owed := map[string]bool{}
	for _, row := range rows {
		c, _ := decode(row.Content) // ignore the error, because a row that cannot be decoded is never sent
		for _, f := range c.Files {
			owed[f.Spooled] = true
		}
	}
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return fmt.Errorf("list files to be sent: %w", err)
	}
	for _, e := range entries {
		if !owed[e.Name()] {
			err = errors.Join(err, s.root.Remove(e.Name()))
		}
	}
	return err
}

// Put stores a file and returns its name for File.Spooled. When Put returns, the file survives a power failure.
func (s *Spool) Put(content []byte) (name string, err error) {
	name = rand.Text()
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("keep a file to be sent: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close(), rooted.Sync(s.root)); err != nil {
		return "", errors.Join(fmt.Errorf("keep a file to be sent: %w", err), s.root.Remove(name))
	}
	return name, nil
}

// Forget deletes files of a message that will not be sent any more.
func (s *Spool) Forget(files ...File) {
	for _, f := range files {
		if f.Spooled != "" {
			_ = s.root.Remove(f.Spooled) // if this fails, the next OpenSpool deletes the file
		}
	}
}

// Close closes the spool.
func (s *Spool) Close() error { return s.root.Close() }
