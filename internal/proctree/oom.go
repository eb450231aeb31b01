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

// OOMKills returns the number of processes in this process's control group that the kernel killed because memory was
// exhausted. It returns nil if the kernel does not count these kills. If this process later moves to another group,
// OOMKills still returns the number of the original group.
func OOMKills() *int64 {
	events, err := os.ReadFile(oomFile())
	if err != nil {
		return nil
	}
	n := oomKills(string(events))
	return &n
}

// oomFile returns the file with the count of OOM kills, or "" if none exists. It searches only once, because every
// start of an agent needs the result.
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

// oomFiles returns the files that may contain the count of OOM kills. cgroups is the content of /proc/self/cgroup. For
// version 1 of control groups, the result contains two files. The first has the path from cgroups. In a container, this
// path is a path of the host. The second file is the one in the root directory of the control groups.
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
			files = append(files, filepath.Join(mount, "memory", path, "memory.oom_control"),
				filepath.Join(mount, "memory", "memory.oom_control"))
		}
	}
	return files
}

// oomKills parses the line oom_kill of memory.events, or of memory.oom_control in version 1.
func oomKills(events string) int64 {
	for line := range strings.Lines(events) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			return n
		}
	}
	return 0
}
