package store

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/internal/store/sqlite"
)

// Backup is an automatic copy of the database.
type Backup struct {
	Path  string
	Made  time.Time
	Bytes int64
}

// backupName is the file name of a backup, as a layout for time.Format.
const backupName = "ductor-20060102T150405Z.db"

// Backups lists the backups in a directory, the newest first.
func Backups(dir string) (all []Backup) {
	entries, _ := os.ReadDir(dir)
	for _, e := range slices.Backward(entries) { // os.ReadDir sorts entries by name
		made, err := time.Parse(backupName, e.Name())
		if info, gone := e.Info(); err == nil && gone == nil && info.Mode().IsRegular() {
			all = append(all, Backup{filepath.Join(dir, e.Name()), made, info.Size()})
		}
	}
	return all
}

// BackUp copies the database at path into the directory dir and checks the copy. Other processes can use the database
// meanwhile. BackUp then deletes the backups that are older than maxAge, and the oldest ones while the total size
// exceeds maxBytes. It returns ErrDiskFull if the copy would leave less free space than its own size.
func BackUp(ctx context.Context, path, dir string, now time.Time, maxAge time.Duration, maxBytes int64) error {
	s, err := schema()
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = checkSpace(path, dir)
	}
	if err == nil {
		err = sqlite.BackUp(ctx, path, filepath.Join(dir, now.UTC().Format(backupName)), s)
	}
	if err != nil {
		return wrap("back up", err)
	}
	var sum int64
	for i, b := range Backups(dir) {
		if sum += b.Bytes; i > 0 && (now.Sub(b.Made) > maxAge || sum > maxBytes) {
			_ = os.Remove(b.Path) // the next backup tries again
		}
	}
	return nil
}

// RemoveDrafts removes backups from dir that a dead process left incomplete, with their journals.
func RemoveDrafts(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if name, _, draft := strings.Cut(e.Name(), sqlite.DraftSuffix); draft {
			if _, err := time.Parse(backupName, name); err == nil {
				_ = os.Remove(filepath.Join(dir, e.Name())) // the next start tries again
			}
		}
	}
}

func checkSpace(path, dir string) error {
	var disk syscall.Statfs_t
	info, err := os.Stat(path)
	if err == nil {
		err = syscall.Statfs(dir, &disk)
	}
	if err == nil && int64(disk.Bavail)*disk.Bsize < 2*info.Size()+64<<20 {
		err = sqlite.ErrDiskFull
	}
	return err
}
