package simulated

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
)

// log is what happened, in order: calls to Telegram, what agents got and did, and the lives of ductor.
type log struct {
	began time.Time
	dir   string // is left out of lines

	mu    sync.Mutex
	lines []string
	last  time.Time // something happened, or is going to
	typed time.Time // ductor said that an agent works
}

func newLog(dir string) *log { return &log{began: time.Now(), dir: dir, last: time.Now()} }

// note appends a line about something that happened.
func (l *log) note(kind, format string, args ...any) {
	l.said(kind, format, args...)
	l.awaits(time.Now())
}

// said appends a line about something that also happens when all is at rest.
func (l *log) said(kind, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), l.dir, "")
	line := fmt.Sprintf("%12.6f %-8s %s", time.Since(l.began).Seconds(), kind, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// awaits notes that something may happen at a moment, which may be to come.
func (l *log) awaits(moment time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if moment.After(l.last) {
		l.last = moment
	}
}

// works notes that ductor said that an agent works.
func (l *log) works() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.typed = time.Now()
}

// quietFor is how long nothing happened; negative while something is awaited. An agent that works and waits for an answer to what
// it asks counts if waiting does.
func (l *log) quietFor(waiting bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if waiting && l.typed.After(l.last) {
		return time.Since(l.typed)
	}
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
