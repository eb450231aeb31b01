package proctree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Group is a control group of version 2 that holds one run's agent and all it starts: what is in one leaves it by no
// fork, exec, session or change of environment. The zero value is none, and holds nothing. No controller is ever
// enabled in it or beside it, so that the rule against processes in inner groups stays without effect. See
// Documentation/admin-guide/cgroup-v2.rst of Linux.
type Group struct{ Path string }

// rmdirWait is how long a group of which all are dead may stay busy.
const rmdirWait = 200 * time.Millisecond

// ErrNoGroup says that there is no control group to be had.
var ErrNoGroup = errors.New("no control group can be had")

// Open gives a file descriptor to start a process in the group with.
func (c Group) Open() (int, error) {
	if c.Path == "" {
		return -1, ErrNoGroup
	}
	return unix.Open(c.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// Populated says whether anything lives in the group or below it. A group that is gone holds nothing.
func (c Group) Populated() bool {
	if c.Path == "" {
		return false
	}
	var buf [256]byte
	events := readSmall(filepath.Join(c.Path, "cgroup.events"), buf[:])
	return slices.Contains(strings.Split(string(events), "\n"), "populated 1")
}

// PIDs lists who lives in the group or below it, as far as they can be seen from here.
func (c Group) PIDs() (pids []int) {
	for _, dir := range c.tree() {
		raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil { // it went during the walk, or is of threads: then they are listed above it
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Kill kills everything in the group and below it at once; what is being forked is not missed, and what changed its
// user is not spared. Linux before 5.14 cannot.
func (c Group) Kill() error {
	if c.Path == "" {
		return ErrNoGroup
	}
	fd, err := unix.Open(filepath.Join(c.Path, "cgroup.kill"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("1"))
	return err
}

// Remove removes an empty group, and those that the agent made in it. One that is not there is no error.
func (c Group) Remove() error {
	if c.Path == "" {
		return nil
	}
	if c.Populated() {
		return unix.EBUSY
	}
	dirs := c.tree()
	slices.Reverse(dirs) // what is inside goes first
	for _, dir := range dirs {
		if err := rmdir(dir); err != nil {
			return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
		}
	}
	return nil
}

func rmdir(dir string) error {
	for until := time.Now().Add(rmdirWait); ; {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(until) {
			return err
		}
		time.Sleep(firstPoll)
	}
}

// tree lists the group and those below it, each before what is inside it.
func (c Group) tree() (dirs []string) {
	if c.Path == "" {
		return nil
	}
	_ = filepath.WalkDir(c.Path, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // what went during the walk is gone
	})
	return dirs
}

// OwnGroup is the directory of the group that this process is in.
func OwnGroup() (string, error) { return GroupOf("self") }

// GroupOf is the directory of the group that a process is in; pid is as in /proc.
func GroupOf(pid string) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	groups, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return "", err
	}
	for _, dir := range cgroupDirs(string(mounts), string(groups)) {
		if IsGroup(dir) { // and is not hidden below another mount
			return dir, nil
		}
	}
	return "", ErrNoGroup
}

func IsGroup(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && int64(st.Type) == unix.CGROUP2_SUPER_MAGIC
}

// cgroupDirs lists where the version 2 group of a process may be found, given its /proc/self/mountinfo and
// /proc/self/cgroup, see proc_pid_mountinfo(5) and cgroups(7). Version 2 is mounted alone or beside version 1.
func cgroupDirs(mounts, groups string) (dirs []string) {
	own, ok := cgroupPath(groups)
	if !ok {
		return nil
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		f := strings.Fields(before)
		kind, _, _ := strings.Cut(after, " ")
		if kind != "cgroup2" || len(f) < 5 {
			continue
		}
		const root, point = 3, 4
		rest, inside := strings.CutPrefix(own+"/", strings.TrimSuffix(unescapeMount(f[root]), "/")+"/")
		if dir := unescapeMount(f[point]); inside && filepath.IsAbs(dir) {
			dirs = append(dirs, filepath.Join(dir, rest))
		}
	}
	return dirs
}

// cgroupPath is the path in the hierarchy of version 2. One outside of what the namespace shows, "/../x", is none.
func cgroupPath(groups string) (string, bool) {
	for line := range strings.Lines(groups) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			up := slices.Contains(strings.Split(path, "/"), "..")
			return strings.TrimSuffix(path, "/"), strings.HasPrefix(path, "/") && !up
		}
	}
	return "", false
}

// unescapeMount undoes how mountinfo writes blanks, "\040".
func unescapeMount(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if code, err := strconv.ParseUint(after[:min(3, len(after))], 8, 8); err == nil && len(after) >= 3 {
			b.WriteByte(byte(code))
			text = after[3:]
			continue
		}
		b.WriteByte('\\')
		text = after
	}
}

// GroupParent is the group of a process, in which those of what it starts are made. The error says why it can make none.
func GroupParent(pid string) (string, error) {
	own, err := GroupOf(pid)
	if err != nil {
		return "", err
	}
	if err := unix.Access(own, unix.W_OK); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrNoGroup, own, err)
	}
	return own, nil
}
