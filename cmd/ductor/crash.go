package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

// Where the runtime writes what ductor crashes of, in the storage directory, and where that is kept from the next start
// on.
const (
	crashFile = "crash.log"
	lastCrash = "crash.last.log"
)

// crashCalm is how long ductor runs before what it has at hand is no longer taken for the cause of a crash.
const crashCalm = 10 * time.Minute

// watchCrashes counts a crash of the process before this one, so that what it may have died of is given up in time,
// and has the runtime write down one of this process.
func (h *house) watchCrashes(ctx context.Context) error {
	path := filepath.Join(h.cfg.Storage.Dir, crashFile)
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		what, _, _ := bytes.Cut(text, []byte("\n"))
		kept := filepath.Join(h.cfg.Storage.Dir, lastCrash)
		h.log.Error("ductor crashed before this start", "what", string(what), "see", kept)
		if err := h.db.CountCrash(ctx); err != nil {
			return err
		}
		if err := os.Rename(path, kept); err != nil {
			return fmt.Errorf("keep what ductor crashed of: %w", err)
		}
		h.crashed = true
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

// outliveCrash forgets crashes once ductor has run for a while.
func (h *house) outliveCrash(ctx context.Context) {
	calm := time.NewTimer(crashCalm)
	defer calm.Stop()
	select {
	case <-ctx.Done():
	case <-calm.C:
		if err := h.db.ForgetCrashes(ctx); err != nil {
			h.log.Warn("forget a crash", "err", err)
		}
	}
}
