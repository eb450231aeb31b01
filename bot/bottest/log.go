package bottest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// Log is a slog.Handler that records lines.
type Log struct {
	mu    sync.Mutex
	lines []string
}

// Enabled returns true for all levels.
func (*Log) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs ignores the attributes.
func (l *Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup ignores the group.
func (l *Log) WithGroup(string) slog.Handler { return l }

// Handle records a line.
func (l *Log) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// Lines returns all recorded lines.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}
