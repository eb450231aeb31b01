package real

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// role is the purpose of a process in the container of a scenario.
type role string

const (
	roleOfHarness role = "harness" // first process of the container, driver, or process that keeps a CPU busy
	roleOfDuctor  role = "ductor"
	roleOfRunner  role = "runner"
	roleOfAgent   role = "agent"
	roleOfTool    role = "tool" // a child process of an agent
)

type process struct {
	pid     int
	state   byte // state in /proc/PID/stat, such as 'Z' for a zombie
	role    role
	command string
}

func (p process) String() string {
	return fmt.Sprintf("%s %d (%c): %s", p.role, p.pid, p.state, p.command)
}

// processes returns the processes of ductor, its runner, agents and tools. It reads /proc, which shows only the
// processes in the container of this scenario.
func processes() []process {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var all []process
	for _, stat := range stats {
		raw, err := os.ReadFile(stat)
		if err != nil {
			continue // the process has ended in the meantime
		}
		dir := filepath.Dir(stat)
		pid, _ := strconv.Atoi(filepath.Base(dir))
		_, rest, _ := strings.Cut(string(raw), ") ")
		fields := strings.Fields(rest)
		if pid == os.Getpid() || pid == 1 || len(fields) < 2 {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		program, _ := os.Readlink(filepath.Join(dir, "exe"))
		p := process{pid: pid, state: fields[0][0],
			command: strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))}
		p.role = roleOf(strings.TrimSuffix(program, " (deleted)"), p.command)
		if p.role != roleOfHarness {
			all = append(all, p)
		}
	}
	return all
}

func roleOf(program, command string) role {
	first, _, _ := strings.Cut(command, " ")
	switch name := filepath.Base(first); {
	case strings.HasPrefix(first, harnessName):
		return roleOfHarness
	case filepath.Base(program) == "ductor-runner":
		return roleOfRunner
	case slices.Contains(agentNames[:], name):
		return roleOfAgent
	case filepath.Base(program) == "ductor":
		return roleOfDuctor
	}
	return roleOfTool
}

func withRole(all []process, is role) (picked []process) {
	for _, p := range all {
		if p.role == is {
			picked = append(picked, p)
		}
	}
	return picked
}

func signalAll(some []process, sig syscall.Signal) {
	for _, p := range some {
		_ = syscall.Kill(p.pid, sig) // the process may have ended in the meantime
	}
}

// measures contains the resources that a process uses.
type measures struct {
	RSS         int64 // bytes
	Descriptors int
	Threads     int
}

func measure(pid int) (m measures) {
	if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
		m.Descriptors = len(open)
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			m.RSS = n << 10
		case "Threads":
			m.Threads = int(n)
		}
	}
	return m
}
