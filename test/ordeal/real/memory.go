package real

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// memoryGroup is a control group whose processes have little memory: the kernel kills one of them when there is none left.
type memoryGroup struct{ dir string }

// newMemoryGroup makes a control group, of version 1 or 2. A machine that lets nobody make one gives nil.
func newMemoryGroup(name string, megabytes int) *memoryGroup {
	for root, limit := range memoryRoots() {
		dir := filepath.Join(root, name)
		if os.Mkdir(dir, 0o700) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(dir, limit), []byte(strconv.Itoa(megabytes<<20)), 0o600) == nil {
			return &memoryGroup{dir}
		}
		_ = os.Remove(dir)
	}
	return nil
}

// memoryRoots are where control groups are, and their file with the limit.
func memoryRoots() map[string]string {
	return map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"}
}

// removeMemoryGroup removes a group, if there is one. It works once the box is gone with all its processes.
func removeMemoryGroup(name string) {
	for root := range memoryRoots() {
		_ = os.Remove(filepath.Join(root, name))
	}
}

// join moves a process into the group. What it starts from now on is in it too.
func (g *memoryGroup) join(pid int) error {
	if g == nil {
		return nil
	}
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("limit the memory of ductor: %w", err)
	}
	return nil
}
