package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"ductor/bot/tgapi"
	"ductor/internal/config"
	"ductor/internal/secrets"
)

// NewScrubber returns a Scrubber for the secrets in the configuration and the keys in ductor's environment.
func NewScrubber(cfg config.Config) *tgapi.Scrubber {
	return tgapi.NewScrubber(cfg.Telegram.Token.Reveal(),
		slices.Concat(cfg.Secrets(), serverSecrets(cfg), secrets.OfEnvironment(os.Environ()))...)
}

// Log is the configured logger. After SIGHUP, it opens its file again.
type Log struct {
	*slog.Logger
	Level *slog.LevelVar
	file  *logFile // nil if the log goes to standard error
}

// OpenLog opens the configured log. It removes secrets from everything that is logged.
func OpenLog(cfg config.Log, scrub *tgapi.Scrubber, stderr io.Writer) (*Log, error) {
	l := &Log{Level: new(slog.LevelVar)}
	to := stderr
	if cfg.File != "" {
		var err error
		if l.file, err = openLogFile(cfg.File); err != nil {
			return nil, WithKind(ErrConfig, fmt.Errorf("open log.file: %w", err))
		}
		to = l.file
	}
	if err := l.Level.UnmarshalText([]byte(cfg.Level)); err != nil {
		return nil, WithKind(ErrConfig, fmt.Errorf("log.level: %w", err))
	}
	opts := &slog.HandlerOptions{Level: l.Level}
	var handler slog.Handler = slog.NewTextHandler(to, opts)
	if cfg.Format == "json" {
		handler = slog.NewJSONHandler(to, opts)
	}
	l.Logger = slog.New(scrub.Handler(handler))
	return l, nil
}

// Close closes the file of the log, if it has one.
func (l *Log) Close() {
	if l.file != nil {
		l.file.close()
	}
}

// reopen opens the file of the log again, if it has one. It logs the result.
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

// logFile is the file of the log. It supports programs that rotate logs: they rename the file and send SIGHUP, and
// ductor then creates a new file.
type logFile struct {
	path string

	mu sync.Mutex
	f  *os.File
}

func openLogFile(path string) (*logFile, error) {
	l := &logFile{path: path}
	return l, l.reopen()
}

// reopen opens the file, and creates it if necessary. If that fails, the previous file stays open.
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
