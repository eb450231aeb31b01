package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"ductor/bot"
	"ductor/internal/config"
	"ductor/internal/secrets"
)

// newScrubber knows the secrets of the configuration, and the keys that agents may be given of ductor's environment.
func newScrubber(cfg config.Config) *bot.Scrubber {
	return bot.NewScrubber(cfg.Telegram.Token.Reveal(), append(cfg.Secrets(), secrets.OfEnvironment(os.Environ())...)...)
}

// openLog makes the logger of the configuration. No record carries a secret. closeLog releases its file, which SIGHUP
// reopens until then.
func openLog(cfg config.Log, scrub *bot.Scrubber, stderr io.Writer) (log *slog.Logger, closeLog func(), err error) {
	to := stderr
	var file *logFile
	if cfg.File != "" {
		if file, err = openLogFile(cfg.File); err != nil {
			return nil, nil, coded{fmt.Errorf("open log.file: %w", err), errConfig}
		}
		to = file
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
	log = slog.New(scrub.Handler(handler))
	if file == nil {
		return log, func() {}, nil
	}
	stop := file.reopenOnHangup(log)
	return log, func() { stop(); file.close() }, nil
}
