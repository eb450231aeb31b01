package simulated

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// log is what happened, in order: calls to Telegram, what agents got and did, and the lives of ductor.
type log struct {
	began time.Time

	mu    sync.Mutex
	lines []string
	last  time.Time // of the last line that is no poll
}

func newLog() *log { return &log{began: time.Now(), last: time.Now()} }

// note appends a line.
func (l *log) note(kind, format string, args ...any) {
	now := time.Now()
	line := fmt.Sprintf("%12.6f %-8s %s", now.Sub(l.began).Seconds(), kind, fmt.Sprintf(format, args...))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.last = now
}

// said appends a line that does not count as something that happened.
func (l *log) said(kind, format string, args ...any) {
	line := fmt.Sprintf("%12.6f %-8s %s", time.Since(l.began).Seconds(), kind, fmt.Sprintf(format, args...))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// quietFor is how long nothing was noted.
func (l *log) quietFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.last)
}

// all copies the lines.
func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// hash is the same for two runs in which the same things happened at the same times.
func (l *log) hash() string {
	sum := sha256.New()
	for _, line := range l.all() {
		sum.Write([]byte(line + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
