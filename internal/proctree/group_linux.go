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

// Group is a control group (version 2) with the processes of one run. A process cannot leave the group by fork, exec, a
// new session or a new environment. The zero value means no group. The kernel allows processes both in the group and in
// groups below it, because ductor enables no controllers there. See Documentation/admin-guide/cgroup-v2.rst of Linux.
type Group struct{ Path string }

// rmdirWait is how long the kernel may still report a group as busy after its last process has died.
const rmdirWait = 200 * time.Millisecond

// ErrNoGroup means that no control group is available.
var ErrNoGroup = errors.New("no control group can be had")

// Open returns a file descriptor of the group, which can be passed to clone3 to start a process in the group.
func (c Group) Open() (int, error) {
	if c.Path == "" {
		return -1, ErrNoGroup
	}
	return unix.Open(c.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// Populated reports whether a process in the group, or in a group below it, is alive. It returns false if the group
// does not exist.
func (c Group) Populated() bool {
	if c.Path == "" {
		return false
	}
	var buf [256]byte
	events := readSmall(filepath.Join(c.Path, "cgroup.events"), buf[:])
	return slices.Contains(strings.Split(string(events), "\n"), "populated 1")
}

// PIDs returns the processes in the group and in groups below it. It omits processes outside of this PID namespace.
func (c Group) PIDs() (pids []int) {
	for _, dir := range c.tree() {
		raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		// If this fails, the group was removed, or it is a threaded group, whose parent lists the processes.
		if err != nil {
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

// Kill kills all processes in the group and in groups below it at once. It also kills processes that are just being
// forked, and processes that changed their user. Kill requires Linux 5.14.
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

// Remove removes an empty group, and the groups that the agent created below it. It returns nil if the group does not
// exist, and EBUSY if the group contains a process.
func (c Group) Remove() error {
	if c.Path == "" {
		return nil
	}
	if c.Populated() {
		return unix.EBUSY
	}
	dirs := c.tree()
	slices.Reverse(dirs) // children first
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

// tree returns the directories of the group and of all groups below it, parents first.
func (c Group) tree() (dirs []string) {
	if c.Path == "" {
		return nil
	}
	_ = filepath.WalkDir(c.Path, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // ignore directories that were removed during the walk
	})
	return dirs
}

// OwnGroup returns the directory of this process's control group.
func OwnGroup() (string, error) { return GroupOf("self") }

// GroupOf returns the directory of the control group of a process, which is identified by its PID or by "self".
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
		if IsGroup(dir) { // another file system may be mounted over dir
			return dir, nil
		}
	}
	return "", ErrNoGroup
}

func IsGroup(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && int64(st.Type) == unix.CGROUP2_SUPER_MAGIC
}

// cgroupDirs returns the directories that may be the version 2 control group of a process. There are several if version
// 2 is mounted beside version 1. mounts is the content of /proc/self/mountinfo; see proc_pid_mountinfo(5). groups is
// the content of the process's cgroup file; see cgroups(7).
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

// cgroupPath returns the path of the group in the version 2 hierarchy. It returns false for a path outside of this
// process's namespace ("/../x").
func cgroupPath(groups string) (string, bool) {
	for line := range strings.Lines(groups) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			up := slices.Contains(strings.Split(path, "/"), "..")
			return strings.TrimSuffix(path, "/"), strings.HasPrefix(path, "/") && !up
		}
	}
	return "", false
}

// unescapeMount decodes the octal escapes of mountinfo, such as "\040" for a blank.
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

// GroupParent returns the control group of a process, if the process can create groups for its children there.
// Otherwise, it returns an error with the reason.
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
