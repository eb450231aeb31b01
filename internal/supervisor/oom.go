package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomCounter tells whether the kernel killed something in our cgroup for want of memory since it was made.
// Without a version 2 cgroup it never says so.
type oomCounter struct {
	file   string
	before int64
}

func newOOMCounter() oomCounter {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return oomCounter{}
	}
	for line := range strings.Lines(string(raw)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			c := oomCounter{file: filepath.Join("/sys/fs/cgroup", path, "memory.events")}
			c.before = c.kills()
			return c
		}
	}
	return oomCounter{}
}

func (c oomCounter) grew() bool { return c.kills() > c.before }

func (c oomCounter) kills() int64 {
	raw, err := os.ReadFile(c.file)
	if err != nil {
		return 0
	}
	return oomKills(string(raw))
}

// oomKills reads the line oom_kill of memory.events.
func oomKills(events string) int64 {
	for line := range strings.Lines(events) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			return n
		}
	}
	return 0
}
