package main

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
)

// lockToken makes this process the only one of this user that serves token, until release is called or it
// dies. The file is named by a hash, so that the token is not on disk once more.
func lockToken(dir, token string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make lock directory: %w", err)
	}
	sum := sha256.Sum256([]byte(token))
	path := filepath.Join(dir, hex.EncodeToString(sum[:8])+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, coded{fmt.Errorf("another ductor serves this bot already (process %s); stop it first, or give this one a bot token of its own", holder(f)), errInstance}
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("write lock file: %w", err)
		}
	}
	return func() { f.Close() }, nil
}

func holder(f *os.File) string {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return pid
	}
	return "unknown"
}
