package proctree

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Glance returns the live members that are in the control group or descend from the root, the oldest first. It is
// faster than Members, because it does not read all processes of the machine. But it misses members that Members finds
// in other ways. Use Glance to describe a run, not to end it. If the root is dead, or the kernel does not list the
// children of processes, Glance calls Members.
func (t *Tree) Glance() ([]ID, error) {
	root, ok := readProc(t.root.PID)
	if !ok || root.ID != t.root || root.dead() {
		return t.Members()
	}
	found := map[int]procStat{root.PID: root}
	if err := t.addBelow(found, root.PID); err != nil {
		return t.Members()
	}
	for _, pid := range t.cg.PIDs() {
		if p, ok := readProc(pid); ok {
			found[pid] = p
		}
	}
	var ids []ID
	for p := range maps.Values(found) {
		if t.mayDescend(p) && !p.dead() {
			ids = append(ids, p.ID)
		}
	}
	slices.SortFunc(ids, func(a, b ID) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) })
	return ids, nil
}

// addBelow adds all descendants of a process to the map found. It returns an error if the kernel does not list the
// children of a process.
func (t *Tree) addBelow(found map[int]procStat, pid int) error {
	dir := fmt.Sprintf("/proc/%d/task/", pid)
	raw, err := os.ReadFile(dir + strconv.Itoa(pid) + "/children")
	if err != nil {
		return err
	}
	children := string(raw)
	threads, _ := os.ReadDir(dir) // fails if the process has just ended
	for _, thread := range threads {
		if thread.Name() != strconv.Itoa(pid) {
			raw, _ := os.ReadFile(dir + thread.Name() + "/children") // fails if the thread has just ended
			children += " " + string(raw)
		}
	}
	for name := range strings.FieldsSeq(children) {
		child, err := strconv.Atoi(name)
		if err != nil {
			return fmt.Errorf("read the children of %d: %w", pid, err)
		}
		if _, seen := found[child]; seen {
			continue
		}
		if p, ok := readProc(child); ok {
			found[child] = p
			// Ignore the error, because the child may have ended. The kernel has then moved the children of the child
			// to another parent in the tree.
			_ = t.addBelow(found, child)
		}
	}
	return nil
}
