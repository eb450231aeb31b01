package proctree

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// OOMCounter tells whether the kernel killed something in our cgroup for want of memory since it was made.
// Where neither version of cgroups counts, it never says so.
type OOMCounter struct {
	file   string
	before int64
}

// NewOOMCounter counts from now on.
func NewOOMCounter() OOMCounter {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return OOMCounter{}
	}
	for _, file := range oomFiles(string(raw)) {
		if _, err := os.Stat(file); err == nil {
			c := OOMCounter{file: file}
			c.before = c.kills()
			return c
		}
	}
	return OOMCounter{}
}

// oomFiles lists where the kernel may count, given /proc/self/cgroup. In a container of version 1 the path is the
// machine's, and what is mounted is the container's own.
func oomFiles(cgroups string) (files []string) {
	const mount = "/sys/fs/cgroup"
	for line := range strings.Lines(cgroups) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case controllers == "":
			files = append(files, filepath.Join(mount, path, "memory.events"))
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			files = append(files, filepath.Join(mount, "memory", path, "memory.oom_control"), filepath.Join(mount, "memory", "memory.oom_control"))
		}
	}
	return files
}

// Grew says whether the kernel killed something since c was made.
func (c OOMCounter) Grew() bool { return c.kills() > c.before }

// Mark is the count from before, for a later reader; nil where the kernel does not count.
func (c OOMCounter) Mark() *int64 {
	if c.file == "" {
		return nil
	}
	return &c.before
}

func (c OOMCounter) kills() int64 {
	raw, err := os.ReadFile(c.file)
	if err != nil {
		return 0
	}
	return oomKills(string(raw))
}

// oomKills reads the line oom_kill of memory.events, or of version 1's memory.oom_control.
func oomKills(events string) int64 {
	for line := range strings.Lines(events) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			return n
		}
	}
	return 0
}

// OOMGrewSince says whether the kernel killed more than before where we are.
func OOMGrewSince(before int64) bool { return NewOOMCounter().before > before }
