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

// The files of the storage directory to which the runtime writes the message of a crash, and in which the next start
// keeps it.
const (
	crashFile = "crash.log"
	lastCrash = "crash.last.log"
)

// crashForgottenAfter is how long ductor must run before it takes its work no longer for the cause of a crash.
const crashForgottenAfter = 10 * time.Minute

// WatchCrashes counts a crash of the previous process, so that ductor gives up the turn that may have caused it, and
// makes the runtime write the message of a crash of this one.
func (a *App) WatchCrashes(ctx context.Context) error {
	path := filepath.Join(a.cfg.Storage.Dir, crashFile)
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		what, _, _ := bytes.Cut(text, []byte("\n"))
		kept := filepath.Join(a.cfg.Storage.Dir, lastCrash)
		a.Log.Error("ductor crashed before this start", "what", string(what), "see", kept)
		if err := a.db.CountCrash(ctx); err != nil {
			return err
		}
		if err := os.Rename(path, kept); err != nil {
			return fmt.Errorf("keep what ductor crashed of: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	defer f.Close() // the runtime keeps a copy of its own
	if err := debug.SetCrashOutput(f, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("have crashes written to %s: %w", path, err)
	}
	return nil
}

// forgetCrashes forgets crashes once ductor has run for a while.
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
