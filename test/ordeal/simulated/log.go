package simulated

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
)

// log records the events of a scenario, in order: calls to Telegram, prompts, actions of agents, and starts and ends of
// ductor.
type log struct {
	began time.Time
	dir   string // path that is removed from all lines

	mu    sync.Mutex
	lines []string
	last  time.Time // time of the latest event, or of a later event that the simulation expects (see expectAt)
	typed time.Time // when ductor last showed that it is typing
}

func newLog(dir string) *log { return &log{began: time.Now(), dir: dir, last: time.Now()} }

// note adds a line about an event. The event counts as activity.
func (l *log) note(kind, format string, args ...any) {
	l.noteQuietly(kind, format, args...)
	l.expectAt(time.Now())
}

// noteQuietly adds a line about an event that does not count as activity.
func (l *log) noteQuietly(kind, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), l.dir, "")
	line := fmt.Sprintf("%12.6f %-8s %s", time.Since(l.began).Seconds(), kind, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// expectAt records that an event will happen at the given time, for example that ductor will start again. Until then,
// the scenario does not count as quiet.
func (l *log) expectAt(moment time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if moment.After(l.last) {
		l.last = moment
	}
}

func (l *log) recordTyping() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.typed = time.Now()
}

// quietFor returns how much time has passed since the last event. It returns a negative duration until the time of the
// last event that expectAt recorded. If waiting is true, ductor's typing indicator also counts as an event. ductor
// shows the indicator while an agent works or waits for a decision.
func (l *log) quietFor(waiting bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if waiting && l.typed.After(l.last) {
		return time.Since(l.typed)
	}
	return time.Since(l.last)
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

// hash returns a hash of all lines and their times.
func (l *log) hash() string {
	sum := sha256.New()
	for _, line := range l.all() {
		sum.Write([]byte(line + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
