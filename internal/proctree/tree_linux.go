package proctree

import (
	"cmp"
	"os"
	"slices"
)

// Tree contains the processes that a program (the root) started, even if they left its process group, its session or
// their parent. These processes are the tree's members. Not safe for concurrent use.
type Tree struct {
	root   ID
	entry  string // processes with this environment entry ("NAME=value") are members; "" for none
	self   int
	cg     Group       // all processes in this control group are members
	inside bool        // this process itself is in the control group
	known  map[ID]bool // all members found so far
}

// New returns the tree of the process root. If mark is not empty, it is an environment entry ("NAME=value"), and
// processes with this entry are also members.
func New(root ID, mark string) *Tree {
	return &Tree{root: root, entry: mark, self: os.Getpid(), known: map[ID]bool{root: true}}
}

// In returns the tree of all processes in a control group. Descendants of these processes are members even outside of
// the group.
func In(c Group) *Tree {
	return &Tree{self: os.Getpid(), cg: c, known: map[ID]bool{}}
}

// Within adds a control group to the tree: all processes in the group become members.
func (t *Tree) Within(c Group) *Tree {
	t.cg = c
	return t
}

// Members returns the live members.
func (t *Tree) Members() ([]ID, error) {
	live, err := t.liveMembers()
	ids := make([]ID, 0, len(live))
	for _, p := range live {
		ids = append(ids, p.ID)
	}
	return ids, err
}

// members returns the live members of the tree, the oldest first. So a parent receives SIGTERM before its children.
// Otherwise, a parent could see its children end, and report success before it receives SIGTERM itself. unsure is the
// number of processes that may be members, but that members could not inspect at the moment.
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

// addKnown adds processes to the set of members: those from earlier scans, and those in the root's process group or
// session.
func (t *Tree) addKnown(members map[int]bool, procs []procStat, byID map[int]procStat) {
	leader, there := byID[t.root.PID]
	reused := there && leader.Start != t.root.Start
	for _, p := range procs {
		grouped := t.root.PID > 0 && !reused && (p.session == t.root.PID || p.group == t.root.PID)
		if t.known[p.ID] || grouped && t.mayDescend(p) {
			members[p.PID] = true
		}
	}
}

// addGrouped adds the processes of the control group to the set of members. It omits processes that started after this
// scan had listed the processes. The next scan finds them.
func (t *Tree) addGrouped(members map[int]bool, byID map[int]procStat) {
	t.inside = false
	for _, pid := range t.cg.PIDs() {
		if pid == t.self {
			t.inside = true
			continue
		}
		was, listed := byID[pid]
		if now, ok := readProc(pid); ok && listed && now.ID == was.ID { // if the IDs differ, the PID was reused
			members[pid] = true
		}
	}
}

// groupPopulated reports whether the kernel reports a live process in the control group. A scan may miss this process,
// for example if it is in another PID namespace.
func (t *Tree) groupPopulated() bool { return !t.inside && t.cg.Populated() }

// Held reports whether the tree has a live member. If the tree has a control group, Held only checks whether the group
// is empty. This check is fast, but ignores members outside of the group. Use Held to wait for members, not to end
// them.
func (t *Tree) Held() bool {
	if t.cg.Path != "" && !t.inside {
		return t.cg.Populated()
	}
	live, err := t.Members()
	return err == nil && len(live) > 0
}

// requiredScans returns how many consecutive scans must find no member before End returns. One is enough if the kernel
// reports whether the control group is empty. Without a control group, a scan may miss a program that repeatedly forks
// and exits.
func (t *Tree) requiredScans() int {
	if t.cg.Path != "" && !t.inside {
		return 1
	}
	return emptyScans
}

// marked reports whether p has the environment entry t.entry, which only members have. If marked cannot inspect p at
// the moment, it returns known = false. It does not read the environment of a process that cannot be a member.
func (t *Tree) marked(p procStat) (yes, known bool) {
	if t.entry == "" || !t.mayDescend(p) || p.dead() {
		return false, true
	}
	return hasEnviron(p.PID, t.entry)
}

// mayDescend reports whether p may be a descendant of the root. A descendant is never older than the root.
func (t *Tree) mayDescend(p procStat) bool { return p.Start >= t.root.Start && p.PID != t.self }

// addDescendants adds all descendants of the members to the set of members.
func (t *Tree) addDescendants(members map[int]bool, procs []procStat, byID map[int]procStat) {
	for changed := true; changed; {
		changed = false
		for _, p := range procs {
			parent, ok := byID[p.parent]
			if ok && members[parent.PID] && !members[p.PID] && t.mayDescend(p) {
				members[p.PID], changed = true, true
			}
		}
	}
}

func alive(id ID) bool {
	p, ok := readProc(id.PID)
	return ok && p.ID == id && !p.dead()
}
