package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"ductor/bot/tgapi"
	"ductor/internal/config"
	"ductor/internal/secrets"
)

// NewScrubber knows the secrets of the configuration, and the keys that agents may be given of ductor's environment.
func NewScrubber(cfg config.Config) *tgapi.Scrubber {
	return tgapi.NewScrubber(cfg.Telegram.Token.Reveal(), append(cfg.Secrets(), secrets.OfEnvironment(os.Environ())...)...)
}

// Log is the log of the configuration.
type Log struct {
	*slog.Logger
	Level *slog.LevelVar
	file  *logFile // nil: it goes elsewhere
}

// OpenLog makes the logger of the configuration. No record carries a secret. Close releases its file.
func OpenLog(cfg config.Log, scrub *tgapi.Scrubber, stderr io.Writer) (*Log, error) {
	l := &Log{Level: new(slog.LevelVar)}
	to := stderr
	if cfg.File != "" {
		var err error
		if l.file, err = openLogFile(cfg.File); err != nil {
			return nil, OfKind(ErrConfig, fmt.Errorf("open log.file: %w", err))
		}
		to = l.file
	}
	if err := l.Level.UnmarshalText([]byte(cfg.Level)); err != nil {
		return nil, OfKind(ErrConfig, fmt.Errorf("log.level: %w", err))
	}
	opts := &slog.HandlerOptions{Level: l.Level}
	var handler slog.Handler = slog.NewTextHandler(to, opts)
	if cfg.Format == "json" {
		handler = slog.NewJSONHandler(to, opts)
	}
	l.Logger = slog.New(scrub.Handler(handler))
	return l, nil
}

// Close releases the file.
func (l *Log) Close() {
	if l.file != nil {
		l.file.close()
	}
}

// reopen opens the file anew, if there is one, and logs that.
func (l *Log) reopen() {
	if l.file == nil {
		return
	}
	if err := l.file.reopen(); err != nil {
		l.Error("reopen log.file; the file that was open stays in use", "err", err)
	} else {
		l.Info("log.file was reopened")
	}
}

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

// reopen writes to the file that has the name now, and makes it where there is none. An error changes nothing.
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
