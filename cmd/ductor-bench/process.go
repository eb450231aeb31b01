package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processes returns the processes of the bot itself, without its agents.
func (s *setup) processes() ([]int, error) {
	if s.bot == floorBot {
		return []int{s.cmd.Process.Pid}, nil
	}
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, link := range links {
		program, err := os.Readlink(link)
		if err != nil || filepath.Dir(program) != filepath.Dir(s.program) ||
			!slices.Contains(programs[:], filepath.Base(program)) {
			continue // the process has ended or runs another program
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		return nil, errors.New("no process of ductor was found")
	}
	return pids, nil
}

// cpu returns the CPU time of a process, or zero if the process has ended.
func cpu(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED in the kernel; see clock_getcpuclockid(3)
	var ts unix.Timespec
	err := unix.ClockGettime(^int32(pid)<<3|sched, &ts)
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// memory returns the proportional set size (PSS) of processes in MB, and how much of the PSS is anonymous memory.
func memory(pids ...int) (pss, anonymous float64, err error) {
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 2 || f[0] != "Pss:" && f[0] != "Pss_Anon:" {
				continue
			}
			kb, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return 0, 0, err
			}
			if f[0] == "Pss:" {
				pss += kb * 1024 / 1e6
			} else {
				anonymous += kb * 1024 / 1e6
			}
		}
	}
	return pss, anonymous, nil
}

// childrenOf returns the child processes that run a command. Children that have not called exec yet do not count.
func childrenOf(pid int, command string) (children []int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		b, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		if len(f) < 2 || f[1] != strconv.Itoa(pid) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if strings.TrimRight(strings.ReplaceAll(string(line), "\x00", " "), " ") != command {
			continue
		}
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return children, nil
}

// exits contains the pidfds of processes, to wait for their end.
type exits []int

// exitsOf opens a pidfd for each process.
func exitsOf(pids ...int) (e exits, err error) {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			e.close()
			return nil, fmt.Errorf("watch process %d: %w", pid, err)
		}
		e = append(e, fd)
	}
	return e, nil
}

func (e exits) close() {
	for _, fd := range e {
		_ = unix.Close(fd)
	}
}

// await waits until all processes have ended, and returns the time at which the last one ended.
func (e exits) await(ctx context.Context) (time.Time, error) {
	for _, fd := range e {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return time.Time{}, fmt.Errorf("wait for a process: %w", err)
			}
			if n > 0 {
				break
			}
			if ctx.Err() != nil {
				return time.Time{}, fmt.Errorf("wait for a process: %w", context.Cause(ctx))
			}
		}
	}
	return time.Now(), nil
}
