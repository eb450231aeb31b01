package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Files is the Shelf of a directory: the regular files in it and below. Links are not followed and not touched.
type Files struct{ Dir string }

type shelved struct {
	path  string
	bytes int64
	at    time.Time
}

// Plan says what Trim would take.
func (f Files) Plan(ctx context.Context, c Cut) (Trimmed, error) {
	all, err := f.list(ctx)
	if err != nil {
		return Trimmed{}, err
	}
	_, t := c.of(all)
	return t, nil
}

// Trim removes files, and directories that are empty after that.
func (f Files) Trim(ctx context.Context, c Cut) (Trimmed, error) {
	all, err := f.list(ctx)
	if err != nil {
		return Trimmed{}, err
	}
	gone, t := c.of(all)
	if len(gone) == 0 {
		return t, nil
	}
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return Trimmed{}, fmt.Errorf("open %s: %w", f.Dir, err)
	}
	defer root.Close()
	var errs []error
	for _, s := range gone {
		err := ctx.Err()
		if err == nil {
			err = root.Remove(s.path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Items, t.Bytes, t.LeftItems, t.LeftBytes = t.Items-1, t.Bytes-s.bytes, t.LeftItems+1, t.LeftBytes+s.bytes
			errs = append(errs, err)
			continue
		}
		for dir := filepath.Dir(s.path); dir != "." && root.Remove(dir) == nil; {
			dir = filepath.Dir(dir)
		}
	}
	return t, errors.Join(errs...)
}

// list is the files, the oldest first.
func (f Files) list(ctx context.Context) ([]shelved, error) {
	var all []shelved
	err := filepath.WalkDir(f.Dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(f.Dir, path)
		all = append(all, shelved{rel, info.Size(), info.ModTime()})
		return err
	})
	slices.SortFunc(all, func(a, b shelved) int { return a.at.Compare(b.at) })
	if err != nil {
		return nil, fmt.Errorf("look through %s: %w", f.Dir, err)
	}
	return all, nil
}

// of parts what goes from what stays. all is sorted, the oldest first.
func (c Cut) of(all []shelved) (gone []shelved, t Trimmed) {
	for _, s := range all {
		t.LeftBytes += s.bytes
	}
	t.LeftItems = int64(len(all))
	if len(all) > 0 {
		t.Oldest = all[0].at
	}
	for i, s := range all {
		old := !c.Before.IsZero() && s.at.Before(c.Before)
		if !old && (c.Bytes == 0 || t.LeftBytes <= c.Bytes) {
			return all[:i], t
		}
		t.Items, t.Bytes = t.Items+1, t.Bytes+s.bytes
		t.LeftItems, t.LeftBytes = t.LeftItems-1, t.LeftBytes-s.bytes
	}
	return all, t
}
