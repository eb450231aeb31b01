package real

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// memoryGroup is a control group with a memory limit. If the processes of the group use more memory, the kernel kills
// one of them.
type memoryGroup struct{ dir string }

// newMemoryGroup creates a control group, with version 1 or 2. It returns nil if this user cannot create one.
func newMemoryGroup(name string, megabytes int) *memoryGroup {
	for root, limit := range memoryRoots() {
		dir := filepath.Join(root, name)
		if os.Mkdir(dir, 0o700) != nil {
			continue
		}
		// Check that dir is a control group. If only version 1 is mounted, the root of version 2 can be an ordinary
		// directory, where WriteFile would create a file without an effect.
		_, err := os.Stat(filepath.Join(dir, "cgroup.procs"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, limit), []byte(strconv.Itoa(megabytes<<20)), 0o600)
		}
		if err == nil {
			return &memoryGroup{dir}
		}
		_ = os.Remove(dir)
	}
	return nil
}

// memoryRoots returns a map. Its keys are the directories in which control groups for memory can be created. The value
// for a directory is the name of the file that sets the memory limit of a group.
func memoryRoots() map[string]string {
	return map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"}
}

// removeMemoryGroup removes a control group, if it exists. All processes in it must have ended.
func removeMemoryGroup(name string) {
	for root := range memoryRoots() {
		_ = os.Remove(filepath.Join(root, name))
	}
}

// join moves a process into the control group. The process's future children also belong to the group.
func (g *memoryGroup) join(pid int) error {
	if g == nil {
		return nil
	}
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil &&
		!errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("limit the memory of ductor: %w", err)
	}
	return nil
}
