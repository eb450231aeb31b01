package main

import (
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// logFile is log.file. What rotates logs renames it and asks by SIGHUP to begin a new one.
type logFile struct {
	path string

	mu sync.Mutex
	f  *os.File
}

func openLogFile(path string) (*logFile, error) {
	l := &logFile{path: path}
	return l, l.reopen()
}

// reopen goes on in the file that has the name now, and makes it where there is none. What it cannot open changes nothing.
func (l *logFile) reopen() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	l.mu.Lock()
	before := l.f
	l.f = f
	l.mu.Unlock()
	if before != nil {
		return before.Close()
	}
	return nil
}

// Write writes to the file of the last reopen.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f.Close()
}

// reopenOnHangup reopens l at every SIGHUP, until stop.
func (l *logFile) reopenOnHangup(log *slog.Logger) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangups {
			if err := l.reopen(); err != nil {
				log.Error("reopen log.file; what was open is written on", "err", err)
			} else {
				log.Info("log.file was reopened")
			}
		}
	}()
	return func() { signal.Stop(hangups); close(hangups); <-done }
}
