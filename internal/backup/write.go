package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"ductor/internal/rooted"
	"ductor/internal/store"
)

// Write creates an archive at target with mode 0600, and returns its manifest. The error matches fs.ErrExist if target
// exists. It is ErrNothing if there is no database. If Write fails, it leaves no archive.
func Write(ctx context.Context, target string, what Contents) (m Manifest, err error) {
	if _, err := os.Stat(filepath.Join(what.State, what.Database)); errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%w: %s is missing", ErrNothing, filepath.Join(what.State, what.Database))
	}
	reserved, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return m, fmt.Errorf("back up: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("back up: %w", err), os.Remove(target))
		}
	}()
	if err := reserved.Close(); err != nil {
		return m, err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(target), ".ductor-backup-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	root, err := os.OpenRoot(what.State)
	if err != nil {
		return m, err
	}
	defer root.Close()
	draft := filepath.Join(scratch, "archive")
	w := &writer{root: root, scratch: scratch, has: map[string]bool{}}
	if m, err = w.write(ctx, draft, what); err != nil {
		return m, err
	}
	if _, _, err := Verify(draft); err != nil {
		return m, fmt.Errorf("verify the new archive: %w", err)
	}
	if err := os.Rename(draft, target); err != nil {
		return m, err
	}
	dir, err := os.OpenRoot(filepath.Dir(target))
	if err != nil {
		return m, err
	}
	return m, errors.Join(rooted.Sync(dir), dir.Close())
}

type writer struct {
	root     *os.Root
	scratch  string
	tar      *tar.Writer
	manifest Manifest
	has      map[string]bool
}

func (w *writer) write(ctx context.Context, path string, what Contents) (m Manifest, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zip, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return m, err
	}
	w.tar = tar.NewWriter(zip)
	w.manifest = Manifest{Format: format, Version: what.Version, Made: time.Now().UTC().Truncate(time.Second),
		State: what.State}
	if err := w.writeContents(ctx, what); err != nil {
		return m, err
	}
	text, err := json.MarshalIndent(w.manifest, "", " ")
	if err == nil {
		err = w.writeHeader(manifestName, int64(len(text)), 0o600)
	}
	if err == nil {
		_, err = w.tar.Write(text)
	}
	return w.manifest, errors.Join(err, w.tar.Close(), zip.Close(), f.Sync())
}

// writeContents writes the directories of the state, then the database, and then the files that were created in the
// directories in the meantime. So the archive contains every file to which a row of the database refers, even if the
// file is created or deleted during the backup. The files outside of the state directory come last.
func (w *writer) writeContents(ctx context.Context, what Contents) error {
	if err := w.writeDirs(ctx, what.Dirs); err != nil {
		return err
	}
	database := filepath.Join(w.scratch, "database")
	if err := store.Copy(ctx, filepath.Join(what.State, what.Database), database); err != nil {
		return err
	}
	if err := w.writeFile(statePrefix+what.Database,
		func() (*os.File, error) { return os.Open(database) }); err != nil {
		return err
	}
	if err := w.writeDirs(ctx, what.Dirs); err != nil {
		return err
	}
	for _, f := range what.Files {
		if err := w.writeFile(otherPrefix+f.Name, func() (*os.File, error) { return os.Open(f.Path) }); err != nil {
			return err
		}
		w.manifest.Paths = append(w.manifest.Paths, f)
	}
	return nil
}

func (w *writer) writeDirs(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := fs.WalkDir(w.root.FS(), name, func(below string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil || !d.Type().IsRegular() || w.has[statePrefix+below] {
				return err
			}
			err = w.writeFile(statePrefix+below, func() (*os.File, error) { return w.root.Open(below) })
			if errors.Is(err, fs.ErrNotExist) { // deleted after the directory was read
				return nil
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// writeFile adds a file. If another process appends to the file meanwhile, the archive does not contain the appended
// part.
func (w *writer) writeFile(name string, open func() (*os.File, error)) error {
	f, err := open()
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", name)
	}
	if err := w.writeHeader(name, info.Size(), info.Mode()); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(w.tar, sum), f, info.Size()); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	w.has[name] = true
	w.manifest.Entries = append(w.manifest.Entries,
		Entry{Name: name, Size: info.Size(), SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func (w *writer) writeHeader(name string, size int64, mode fs.FileMode) error {
	return w.tar.WriteHeader(&tar.Header{Name: path.Clean(name), Size: size, Mode: int64(mode.Perm() & 0o700),
		Typeflag: tar.TypeReg, Format: tar.FormatPAX})
}
