package host

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ductor/internal/proctree"
	"ductor/internal/runner"
)

const (
	lineageTries = 10
	lineagePause = 10 * time.Millisecond
)

// Descends reports whether a process belongs to a run of an agent on this machine. One of these conditions must hold:
//   - Its environment contains the ID of a run.
//   - It is in the control group of a run.
//   - One of its ancestors belongs to a run, or is a runner. A runner adopts the orphaned processes of its agent.
//
// Ancestors that are also ancestors of this process do not count, because an agent may have started ductor itself, as
// in a test. If another service, such as cron or systemd, starts a process for an agent, that process does not belong
// to the run.
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
		if run != "" && run != mark || runGroups(p.PID) > groups || isRunner(p.PID) {
			return true, nil
		}
	}
	return false, nil
}

// isRunner reports whether a process has the command line of a runner: the program, "runner" or "run", and the
// arguments of runner.Main.
func isRunner(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	args := strings.Split(string(raw), "\x00")
	return err == nil && len(args) > 2 && (args[1] == "runner" || args[1] == "run") &&
		slices.ContainsFunc(args[2:], func(arg string) bool { return strings.HasPrefix(arg, "root=/") })
}

// lineage returns a process and its ancestors. It tries again if one of them ends meanwhile.
func lineage(pid int) (line []proctree.ID, err error) {
	for range lineageTries {
		if line, err = proctree.Lineage(pid); err == nil {
			break
		}
		time.Sleep(lineagePause) // until the children of the ended process have a new parent
	}
	return line, err
}

var groupOfRun = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/ductor-[0-9a-f]+-[0-9a-f]+-`) })

// runGroups returns the number of runs to which a process belongs according to its control groups.
func runGroups(pid int) int {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return 0
	}
	return len(groupOfRun().FindAll(raw, -1))
}
