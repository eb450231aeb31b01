package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"ductor/bot/tgapi"
	"ductor/internal/config"
	"ductor/internal/secrets"
)

// NewScrubber knows the secrets of the configuration, and the keys that agents may be given of ductor's environment.
func NewScrubber(cfg config.Config) *tgapi.Scrubber {
	return tgapi.NewScrubber(cfg.Telegram.Token.Reveal(), append(cfg.Secrets(), secrets.OfEnvironment(os.Environ())...)...)
}

// OpenLog makes the logger of the configuration. No record carries a secret. closeLog releases its file, which SIGHUP
// reopens until then.
func OpenLog(cfg config.Log, scrub *tgapi.Scrubber, stderr io.Writer) (log *slog.Logger, closeLog func(), err error) {
	to := stderr
	var file *logFile
	if cfg.File != "" {
		if file, err = openLogFile(cfg.File); err != nil {
			return nil, nil, OfKind(ErrConfig, fmt.Errorf("open log.file: %w", err))
		}
		to = file
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		return nil, nil, OfKind(ErrConfig, fmt.Errorf("log.level: %w", err))
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(to, opts)
	if cfg.Format == "json" {
		handler = slog.NewJSONHandler(to, opts)
	}
	log = slog.New(scrub.Handler(handler))
	if file == nil {
		return log, func() {}, nil
	}
	stop := file.reopenOnHangup(log)
	return log, func() { stop(); file.close() }, nil
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

// reopenOnHangup reopens l at every SIGHUP, until stop.
func (l *logFile) reopenOnHangup(log *slog.Logger) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangups {
			if err := l.reopen(); err != nil {
				log.Error("reopen log.file; the file that was open stays in use", "err", err)
			} else {
				log.Info("log.file was reopened")
			}
		}
	}()
	return func() { signal.Stop(hangups); close(hangups); <-done }
}
