package proctree

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// OOMKills is how often the kernel killed something in our control group for want of memory; nil where neither version of
// them counts. It counts in the group that we were in when it was first asked.
func OOMKills() *int64 {
	events, err := os.ReadFile(oomFile())
	if err != nil {
		return nil
	}
	n := oomKills(string(events))
	return &n
}

// oomFile is where the kernel counts, empty where it does not. It is looked for once: every start of an agent asks.
var oomFile = sync.OnceValue(func() string {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for _, file := range oomFiles(string(raw)) {
		if unix.Access(file, unix.R_OK) == nil {
			return file
		}
	}
	return ""
})

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
