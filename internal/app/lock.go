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

// StorageLock is the name of the lock file in a storage directory.
const StorageLock = "ductor.lock"

// LockInstance locks the bot token and the storage directory for this process, until the process calls release or dies.
// It returns ErrInstance if another process of this user has locked either of them.
func LockInstance(cfg config.Config) (release func(), err error) {
	// The file name contains a hash of the token, so that the token itself is not stored.
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

// LockStorage locks a storage directory for this process, until the process calls release or dies.
func LockStorage(storage string) (release func(), err error) {
	dir, err := lockFile(filepath.Join(storage, StorageLock),
		"uses "+storage+" already", "give this one a storage.dir of its own")
	if err != nil {
		return nil, err
	}
	return func() { dir.Close() }, nil
}

// StorageUser returns the PID of the process that has locked a storage directory. It returns false if no process has
// locked it.
func StorageUser(storage string) (pid int, runs bool) {
	f, err := os.Open(filepath.Join(storage, StorageLock))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	pid, err = strconv.Atoi(lockHolder(f))
	return pid, err == nil && syscall.Kill(pid, 0) == nil
}

// lockDir returns the directory of the locks. All configurations of a user have the same directory, so that ductor
// notices if two of them contain the same token.
func lockDir() string { return filepath.Join(config.StateDir(), "locks") }

// lockFile locks a file until the file is closed. If another process holds the lock, the error message contains two
// texts from the caller. The parameter use describes what the other process is doing. The parameter advice describes
// how both processes can run at the same time.
func lockFile(path, use, advice string) (*os.File, error) {
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
		return nil, WithKind(ErrInstance, fmt.Errorf("another ductor %s (process %s); stop it first, or %s", use,
			lockHolder(f), advice))
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

// lockPatience is how long to wait for the lock of a dead process. When the process died, it may just have forked a
// child. The child inherits the lock, and holds it until exec.
const lockPatience = 5 * time.Second

// lockUnlessHeld locks f. It returns an error if a living process has the lock.
func lockUnlessHeld(f *os.File) error {
	for until := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(until) {
			return err
		}
		pid, unknown := strconv.Atoi(lockHolder(f))
		if unknown != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return err
		}
	}
}

func lockHolder(f *os.File) string {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return pid
	}
	return "unknown"
}
