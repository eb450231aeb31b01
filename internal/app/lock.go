package app

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ductor/internal/config"
)

// StorageLock is the name of a file in the storage directory that a ductor uses.
const StorageLock = "ductor.lock"

// LockInstance makes this process the only one of this user that serves the token of the configuration, and the only one
// that uses its storage directory, until release is called or it dies.
func LockInstance(cfg config.Config) (release func(), err error) {
	// The file of the token is named by a hash, so that the token is not on disk once more.
	sum := sha256.Sum256([]byte(cfg.Telegram.Token.Reveal()))
	bot, err := lockFile(filepath.Join(lockDir(), hex.EncodeToString(sum[:8])+".lock"),
		"serves this bot already", "give this one a bot token of its own")
	if err != nil {
		return nil, err
	}
	releaseDir, err := LockStorage(cfg.Storage.Dir)
	if err != nil {
		bot.Close()
		return nil, err
	}
	return func() { releaseDir(); bot.Close() }, nil
}

// LockStorage makes this process the only one that uses a storage directory, until release is called or it dies.
func LockStorage(storage string) (release func(), err error) {
	dir, err := lockFile(filepath.Join(storage, StorageLock),
		"uses "+storage+" already", "give this one a storage.dir of its own")
	if err != nil {
		return nil, err
	}
	return func() { dir.Close() }, nil
}

// Serving is the process that uses a storage directory, as its lock names it.
func Serving(storage string) (pid int, runs bool) {
	f, err := os.Open(filepath.Join(storage, StorageLock))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	pid, err = strconv.Atoi(holder(f))
	return pid, err == nil && syscall.Kill(pid, 0) == nil
}

// lockDir is the same for every configuration of a user, so that two of them with one token meet there.
func lockDir() string { return filepath.Join(config.StateDir(), "locks") }

// lockFile takes a lock that ends with the file that it returns. The error says what the other one does,
// and what to do instead of stopping it.
func lockFile(path, does, instead string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make lock directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := lockUnlessHeld(f); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, OfKind(ErrInstance, fmt.Errorf("another ductor %s (process %s); stop it first, or %s", does, holder(f), instead))
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write lock file: %w", err)
	}
	return f, nil
}

// lockPatience is how long the lock of a dead process may stay: a child that it just started holds it until its exec.
const lockPatience = 5 * time.Second

// lockUnlessHeld locks f, or fails if a living process holds it.
func lockUnlessHeld(f *os.File) error {
	for until := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(until) {
			return err
		}
		pid, unknown := strconv.Atoi(holder(f))
		if unknown != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return err
		}
	}
}

func holder(f *os.File) string {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return pid
	}
	return "unknown"
}
