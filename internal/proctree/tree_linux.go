package proctree

import (
	"cmp"
	"os"
	"slices"
)

// Tree contains the processes that a program started, even if they left its process group, its session or their
// parent. Not safe for concurrent use.
type Tree struct {
	root   ID
	entry  string // the entry in the environment of members, or ""
	self   int
	cg     Group       // all processes of the group are members
	inside bool        // this process is itself in cg
	known  map[ID]bool // all members found so far
}

// New returns the tree of root. Processes with the entry mark ("NAME=value") in their environment are members too.
func New(root ID, mark string) *Tree {
	return &Tree{root: root, entry: mark, self: os.Getpid(), known: map[ID]bool{root: true}}
}

// In returns the tree of all processes in a group, with their descendants outside of it.
func In(c Group) *Tree {
	return &Tree{self: os.Getpid(), cg: c, known: map[ID]bool{}}
}

// Within adds all processes in the group c to the tree.
func (t *Tree) Within(c Group) *Tree {
	t.cg = c
	return t
}

// Members lists the live members.
func (t *Tree) Members() ([]ID, error) {
	live, err := t.liveMembers()
	ids := make([]ID, 0, len(live))
	for _, p := range live {
		ids = append(ids, p.ID)
	}
	return ids, err
}

// members lists the live members, oldest first. So a parent receives SIGTERM before its children, and cannot report
// their end as a success. unsure is the number of processes that may be members but could not be inspected now.
func (t *Tree) members() (live []procStat, unsure int, err error) {
	var procs []procStat
	byID := map[int]procStat{}
	in := map[int]bool{}
	err = eachProc(func(p procStat) {
		procs, byID[p.PID] = append(procs, p), p
		yes, known := t.marked(p)
		if yes {
			in[p.PID] = true
		}
		if !known && (p.parent == 1 || p.parent == t.self) {
			unsure++
		}
	})
	if err != nil {
		return nil, 0, err
	}
	t.addKnown(in, procs, byID)
	t.addGrouped(in, byID)
	t.addDescendants(in, procs, byID)
	for pid := range in {
		p := byID[pid]
		t.known[p.ID] = true
		if !p.dead() {
			live = append(live, p)
		}
	}
	slices.SortFunc(live, func(a, b procStat) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start),
			cmp.Compare(a.PID, b.PID))
	})
	return live, unsure, nil
}

// addKnown adds members known from earlier scans, and processes in the root's group or session.
func (t *Tree) addKnown(in map[int]bool, procs []procStat, byID map[int]procStat) {
	leader, there := byID[t.root.PID]
	reused := there && leader.Start != t.root.Start
	for _, p := range procs {
		grouped := t.root.PID > 0 && !reused && (p.session == t.root.PID || p.group == t.root.PID)
		if t.known[p.ID] || grouped && t.mayDescend(p) {
			in[p.PID] = true
		}
	}
}

// addGrouped adds the processes of the control group. If a process joined the group after procs were listed, only the
// next scan finds it.
func (t *Tree) addGrouped(in map[int]bool, byID map[int]procStat) {
	t.inside = false
	for _, pid := range t.cg.PIDs() {
		if pid == t.self {
			t.inside = true
			continue
		}
		was, listed := byID[pid]
		if now, ok := readProc(pid); ok && listed && now.ID == was.ID { // otherwise another process has the pid now
			in[pid] = true
		}
	}
}

// groupPopulated reports whether the kernel reports a live member. The member may be invisible here, or a scan may
// have missed it.
func (t *Tree) groupPopulated() bool { return !t.inside && t.cg.Populated() }

// Held reports whether a live member exists. With a control group, Held asks only the kernel, so it ignores members
// that left the group. Use it to wait for members, not to end them.
func (t *Tree) Held() bool {
	if t.cg.Path != "" && !t.inside {
		return t.cg.Populated()
	}
	live, err := t.Members()
	return err == nil && len(live) > 0
}

// requiredScans returns how many scans in a row must find no process. One is enough if the kernel reports whether the
// control group is empty. Otherwise a scan may miss a program that forks and exits repeatedly.
func (t *Tree) requiredScans() int {
	if t.cg.Path != "" && !t.inside {
		return 1
	}
	return emptyScans
}

// marked reports whether p has the entry in its environment, and whether this is known. It skips processes that
// cannot be members.
func (t *Tree) marked(p procStat) (yes, known bool) {
	if t.entry == "" || !t.mayDescend(p) || p.dead() {
		return false, true
	}
	return hasEnviron(p.PID, t.entry)
}

// mayDescend reports whether p may be a descendant of the root: descendants are never older than the root.
func (t *Tree) mayDescend(p procStat) bool { return p.Start >= t.root.Start && p.PID != t.self }

// addDescendants adds all descendants of the processes in the set.
func (t *Tree) addDescendants(in map[int]bool, procs []procStat, byID map[int]procStat) {
	for changed := true; changed; {
		changed = false
		for _, p := range procs {
			parent, ok := byID[p.parent]
			if ok && in[parent.PID] && !in[p.PID] && t.mayDescend(p) {
				in[p.PID], changed = true, true
			}
		}
	}
}

func alive(id ID) bool {
	p, ok := readProc(id.PID)
	return ok && p.ID == id && !p.dead()
}
