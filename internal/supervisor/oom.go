package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// In a Place, which may have little memory and no other program in it, the kernel is to take anything before the supervisor
// of a run: that can say what was taken. So a proxy and all it starts are worth more to it, by this many thousandths of
// the memory there is, and a supervisor that has its agent is worth as much as the proxy was. See proc_pid_oom_score_adj(5).
const (
	expendable = 50
	oomMost    = 1000
	oomAdjFile = "/proc/self/oom_score_adj"
)

// expend makes this process, and what it starts from now on, more likely to be killed for want of memory. It gives what
// was so before; false where that cannot be changed.
func expend() (before int, ok bool) {
	raw, err := os.ReadFile(oomAdjFile)
	if err != nil {
		return 0, false
	}
	before, err = strconv.Atoi(strings.TrimSpace(string(raw)))
	return before, err == nil && setOOMAdj(min(before+expendable, oomMost)) == nil
}

func setOOMAdj(adj int) error { return os.WriteFile(oomAdjFile, []byte(strconv.Itoa(adj)), 0) }

// oomCounter tells whether the kernel killed something in our cgroup for want of memory since it was made.
// Where neither version of cgroups counts, it never says so.
type oomCounter struct {
	file   string
	before int64
}

func newOOMCounter() oomCounter {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return oomCounter{}
	}
	for _, file := range oomFiles(string(raw)) {
		if _, err := os.Stat(file); err == nil {
			c := oomCounter{file: file}
			c.before = c.kills()
			return c
		}
	}
	return oomCounter{}
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

func (c oomCounter) grew() bool { return c.kills() > c.before }

// mark is the count from before, for a later reader; nil where the kernel does not count.
func (c oomCounter) mark() *int64 {
	if c.file == "" {
		return nil
	}
	return &c.before
}

func (c oomCounter) kills() int64 {
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
