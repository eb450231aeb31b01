package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"ductor/bot"
	"ductor/internal/config"
)

// openLog makes the logger of the configuration. No record carries a secret. close releases its file.
func openLog(cfg config.Log, scrub *bot.Scrubber, stderr io.Writer) (log *slog.Logger, closeLog func(), err error) {
	closeLog = func() {}
	to := stderr
	if cfg.File != "" {
		f, err := os.OpenFile(cfg.File, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, coded{fmt.Errorf("open log.file: %w", err), errConfig}
		}
		to, closeLog = f, func() { f.Close() }
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		return nil, nil, coded{fmt.Errorf("log.level: %w", err), errConfig}
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(to, opts)
	if cfg.Format == "json" {
		handler = slog.NewJSONHandler(to, opts)
	}
	return slog.New(scrub.Handler(handler)), closeLog, nil
}
