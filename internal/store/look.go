package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Look opens the database at path to read it: it changes nothing, also not one that is in use or of an earlier version.
// That gives ErrOlder, and a file that is not there an error matching fs.ErrNotExist. Methods that write fail.
func Look(ctx context.Context, path string, opts Options) (*DB, error) {
	opts = opts.filled()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store: find %s: %w", path, err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("store: look into %s: %w", path, err)
	case info.Size() == 0 && noLeftLog(path) == nil: // the first start was killed before it wrote anything
		return nil, fmt.Errorf("store: look into %s: %w", path, fs.ErrNotExist)
	}
	if err := checkHeader(path, info.Size()); err != nil {
		return nil, fmt.Errorf("store: look into %s: %w", path, err)
	}
	r, err := openReader(path, opts, untouched)
	if err != nil {
		return nil, wrap("look into "+path, err)
	}
	if err := r.check(ctx); err != nil {
		return nil, wrap("look into "+path, errors.Join(err, r.close()))
	}
	return &DB{now: opts.Now, read: r}, nil
}

// check says whether the file is one that this version reads.
func (r *reader) check(ctx context.Context) error {
	conn, err := r.pool.Conn(ctx)
	if err != nil {
		return damaged(err)
	}
	defer conn.Close()
	if err := belongsToUs(ctx, conn); err != nil {
		return err
	}
	if err := checkPages(ctx, conn); err != nil {
		return err
	}
	steps, err := embedded()
	if err != nil {
		return err
	}
	version, err := pragma(ctx, conn, "user_version")
	switch {
	case err != nil:
		return err
	case version > len(steps):
		return newer(version, len(steps))
	case version < len(steps):
		return fmt.Errorf("%w: it has version %d, this ductor %d", ErrOlder, version, len(steps))
	}
	return nil
}
