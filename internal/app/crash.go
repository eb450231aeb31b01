package app

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

// Files in the storage directory. The Go runtime writes the message of a crash to crashFile. The next start of ductor
// renames this file to lastCrash.
const (
	crashFile = "crash.log"
	lastCrash = "crash.last.log"
)

// ductor resets its crash counters after it has run for crashForgottenAfter without a crash.
const crashForgottenAfter = 10 * time.Minute

// WatchCrashes checks whether the previous process of ductor crashed, and increments the crash counters if so. A turn
// that may have caused several crashes does not run again. WatchCrashes also makes this process write its crash message
// to a file.
func (a *App) WatchCrashes(ctx context.Context) error {
	path := filepath.Join(a.cfg.Storage.Dir, crashFile)
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		message, _, _ := bytes.Cut(text, []byte("\n"))
		kept := filepath.Join(a.cfg.Storage.Dir, lastCrash)
		a.Log.Error("ductor crashed before this start", "message", string(message), "see", kept)
		if err := a.db.CountCrash(ctx); err != nil {
			return err
		}
		if err := os.Rename(path, kept); err != nil {
			return fmt.Errorf("save the crash message: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	defer f.Close() // the Go runtime has its own duplicate of the descriptor
	if err := debug.SetCrashOutput(f, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("write crashes to %s: %w", path, err)
	}
	return nil
}

// forgetCrashes waits for crashForgottenAfter and then resets the crash counters.
func (a *App) forgetCrashes(ctx context.Context) {
	timer := time.NewTimer(crashForgottenAfter)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
		if err := a.db.ForgetCrashes(ctx); err != nil {
			a.Log.Warn("forget a crash", "err", err)
		}
	}
}
