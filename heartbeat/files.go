package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Files returns a Dataset of the regular files in a directory and its subdirectories. It ignores links.
func Files(dir string) Items {
	return Items{List: func(ctx context.Context) ([]Item, error) { return listFiles(ctx, dir) }}
}

func listFiles(ctx context.Context, dir string) ([]Item, error) {
	var all []Item
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
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
		rel, err := filepath.Rel(dir, path)
		all = append(all, Item{info.ModTime(), info.Size(),
			func(context.Context) error { return removeFile(dir, rel) }})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list files in %s: %w", dir, err)
	}
	return all, nil
}

// removeFile removes a file below dir, and its parent directories if they are then empty.
func removeFile(dir, file string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(file); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for parent := filepath.Dir(file); parent != "." && root.Remove(parent) == nil; {
		parent = filepath.Dir(parent)
	}
	return nil
}
