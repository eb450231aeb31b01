package host

import (
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"ductor/internal/proctree"
	"ductor/internal/runner"
)

const (
	lineageTries = 10
	lineagePause = 10 * time.Millisecond
)

// Descends reports whether a process belongs to a run on this machine. It recognizes a run by its entry in the
// environment and by its control group, of the process and of each of its ancestors, which include the runner. Ancestors
// of this process do not count: an agent may have started ductor itself, as in a test.
//
// A process that another service of the machine starts for an agent, such as cron or systemd, does not descend from it.
func Descends(pid int) (bool, error) {
	line, err := lineage(pid)
	if err != nil {
		return false, err
	}
	own, err := lineage(os.Getpid())
	if err != nil {
		return false, err
	}
	ours := map[proctree.ID]bool{}
	for _, p := range own {
		ours[p] = true
	}
	mark, groups := os.Getenv(runner.RunVar), runGroups(os.Getpid())
	for _, p := range line {
		if ours[p] {
			break
		}
		run := proctree.Variable(p.PID, runner.RunVar)
		if run != "" && run != mark || runGroups(p.PID) > groups {
			return true, nil
		}
	}
	return false, nil
}

// lineage returns a process and its ancestors. It tries again if any ends meanwhile.
func lineage(pid int) (line []proctree.ID, err error) {
	for range lineageTries {
		if line, err = proctree.Lineage(pid); err == nil {
			break
		}
		time.Sleep(lineagePause) // the kernel has given its children another parent by then
	}
	return line, err
}

var groupOfRun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/ductor-[0-9a-f]+-[0-9a-f]+-`) })

// runGroups returns the number of runs in whose control groups a process is.
func runGroups(pid int) int {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return 0
	}
	return len(groupOfRun().FindAll(raw, -1))
}
