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

// Glance lists the members that are alive and in the control group or below the root, the oldest first. It looks at no
// other process, of which there may be thousands, and so misses a member that left both: it is for what tells of a run and
// not for what ends it. It is Members where the root is dead or the kernel does not name children.
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
		if t.young(p) && !p.dead() {
			ids = append(ids, p.ID)
		}
	}
	slices.SortFunc(ids, func(a, b ID) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) })
	return ids, nil
}

// addBelow adds all descendants of a process. It is an error if the kernel does not name the children of its first thread.
func (t *Tree) addBelow(found map[int]procStat, pid int) error {
	dir := fmt.Sprintf("/proc/%d/task/", pid)
	raw, err := os.ReadFile(dir + strconv.Itoa(pid) + "/children")
	if err != nil {
		return err
	}
	children := string(raw)
	threads, _ := os.ReadDir(dir) // a process that ended just now has none
	for _, thread := range threads {
		if thread.Name() != strconv.Itoa(pid) {
			raw, _ := os.ReadFile(dir + thread.Name() + "/children") // nor has a thread
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
			_ = t.addBelow(found, child) // it ended just now: its children are the root's or the group's
		}
	}
	return nil
}
