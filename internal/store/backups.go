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

const (
	backupPrefix = "ductor-"
	backupTime   = "20060102T150405Z"
	backupEnd    = ".db"
)

// Backups lists those in a directory, the newest first.
func Backups(dir string) (all []Backup) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name, begins := strings.CutPrefix(e.Name(), backupPrefix)
		name, ends := strings.CutSuffix(name, backupEnd)
		made, err := time.Parse(backupTime, name)
		info, gone := e.Info()
		if begins && ends && err == nil && gone == nil && info.Mode().IsRegular() {
			all = append(all, Backup{filepath.Join(dir, e.Name()), made, info.Size()})
		}
	}
	slices.SortFunc(all, func(a, b Backup) int { return b.Made.Compare(a.Made) })
	return all
}

// BackUp copies the database at path into a directory, checks the copy, and then deletes the older ones that exceed an age or, with
// the newer ones, a size. A process that uses the database continues. ErrDiskFull where it would not leave room for as much again.
func BackUp(ctx context.Context, path, dir string, now time.Time, age time.Duration, most int64) error {
	s, err := schema()
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = roomFor(path, dir)
	}
	if err == nil {
		err = sqlite.BackUp(ctx, path, filepath.Join(dir, backupPrefix+now.UTC().Format(backupTime)+backupEnd), s)
	}
	if err != nil {
		return wrap("back up", err)
	}
	var sum int64
	for i, b := range Backups(dir) {
		if sum += b.Bytes; i > 0 && (now.Sub(b.Made) > age || sum > most) {
			_ = os.Remove(b.Path) // the next round tries again
		}
	}
	return nil
}

// roomFor refuses a copy that would fill the disk.
func roomFor(path, dir string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return err
	}
	if int64(disk.Bavail)*disk.Bsize < 2*info.Size()+64<<20 {
		return sqlite.ErrDiskFull
	}
	return nil
}
