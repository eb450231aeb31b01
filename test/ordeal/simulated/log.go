package simulated

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
)

// log records events in order: calls to Telegram, prompts and actions of agents, and the processes of ductor.
type log struct {
	began time.Time
	dir   string // removed from lines

	mu    sync.Mutex
	lines []string
	last  time.Time // time of the last or the next expected event
	typed time.Time // time of ductor's last typing
}

func newLog(dir string) *log { return &log{began: time.Now(), dir: dir, last: time.Now()} }

// note appends a line about an event.
func (l *log) note(kind, format string, args ...any) {
	l.said(kind, format, args...)
	l.awaits(time.Now())
}

// said appends a line about an event that does not count as activity.
func (l *log) said(kind, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), l.dir, "")
	line := fmt.Sprintf("%12.6f %-8s %s", time.Since(l.began).Seconds(), kind, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// awaits records that an event may occur at a time, which may be in the future.
func (l *log) awaits(moment time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if moment.After(l.last) {
		l.last = moment
	}
}

// works records that ductor reported a working agent.
func (l *log) works() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.typed = time.Now()
}

// quietFor returns how long nothing has happened. It is negative while an event is expected. Agents that wait for an
// answer to a request count as working if waiting is true.
func (l *log) quietFor(waiting bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if waiting && l.typed.After(l.last) {
		return time.Since(l.typed)
	}
	return time.Since(l.last)
}

// all returns a copy of the lines.
func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// hash returns a value that is equal for runs with the same events at the same times.
func (l *log) hash() string {
	sum := sha256.New()
	for _, line := range l.all() {
		sum.Write([]byte(line + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
