package proctree

import (
	"cmp"
	"os"
	"slices"
)

// Tree finds what a program started, also what left its group, its session and its parent. Not safe for
// concurrent use.
type Tree struct {
	root   ID
	entry  string // the environment marker, or empty
	self   int
	cg     Group       // everything in it is a member
	inside bool        // we are in it ourselves
	known  map[ID]bool // every member ever seen
}

// New is the tree of root. Processes whose environment has the entry mark ("NAME=value") belong to it too.
func New(root ID, mark string) *Tree {
	return &Tree{root: root, entry: mark, self: os.Getpid(), known: map[ID]bool{root: true}}
}

// In is everything in a group, and what it left behind outside of it.
func In(c Group) *Tree {
	return &Tree{self: os.Getpid(), cg: c, known: map[ID]bool{}}
}

// Within makes everything in the group c a member.
func (t *Tree) Within(c Group) *Tree {
	t.cg = c
	return t
}

// Members lists the members that are alive now.
func (t *Tree) Members() ([]ID, error) {
	live, err := t.look()
	ids := make([]ID, 0, len(live))
	for _, p := range live {
		ids = append(ids, p.ID)
	}
	return ids, err
}

// members lists the members that are alive, the oldest first: who is told to end before its children does not get to
// tell of their end as its own success. unsure counts processes that may be members and could not
// be looked into at this moment.
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
	t.seed(in, procs, byID)
	t.addGrouped(in, byID)
	t.adopt(in, procs, byID)
	for pid := range in {
		p := byID[pid]
		t.known[p.ID] = true
		if !p.dead() {
			live = append(live, p)
		}
	}
	slices.SortFunc(live, func(a, b procStat) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) })
	return live, unsure, nil
}

// seed enters who is a member by what it is: seen before, or in the root's group or session.
func (t *Tree) seed(in map[int]bool, procs []procStat, byID map[int]procStat) {
	leader, there := byID[t.root.PID]
	reused := there && leader.Start != t.root.Start
	for _, p := range procs {
		grouped := t.root.PID > 0 && !reused && (p.session == t.root.PID || p.group == t.root.PID)
		if t.known[p.ID] || grouped && t.young(p) {
			in[p.PID] = true
		}
	}
}

// addGrouped enters who is in the control group. Who came into it after procs were listed is found by the next look.
func (t *Tree) addGrouped(in map[int]bool, byID map[int]procStat) {
	t.inside = false
	for _, pid := range t.cg.PIDs() {
		if pid == t.self {
			t.inside = true
			continue
		}
		was, listed := byID[pid]
		if now, ok := readProc(pid); ok && listed && now.ID == was.ID { // the number is no later one's
			in[pid] = true
		}
	}
}

// held says whether the kernel knows of a member, also of one that cannot be seen from here, or that a look missed.
func (t *Tree) held() bool { return !t.inside && t.cg.Populated() }

// Held says whether a member lives, in a short look where there is a control group: the kernel knows who is in it, and a member that
// left it is not seen. It is for who waits for members, and not for what ends them.
func (t *Tree) Held() bool {
	if t.cg.Path != "" && !t.inside {
		return t.cg.Populated()
	}
	live, err := t.Members()
	return err == nil && len(live) > 0
}

// proof is how many looks in a row must find no process. One that forks and ends, over and over, may be missed by a look that the
// kernel does not vouch for.
func (t *Tree) proof() int {
	if t.cg.Path != "" && !t.inside {
		return 1
	}
	return emptyLooks
}

// marked says whether p carries the marker, and whether that is known. It does not read a process that is no candidate.
func (t *Tree) marked(p procStat) (yes, known bool) {
	if t.entry == "" || !t.young(p) || p.dead() {
		return false, true
	}
	return carries(p.PID, t.entry)
}

// young says whether p may descend from the root: nothing is older than its ancestor.
func (t *Tree) young(p procStat) bool { return p.Start >= t.root.Start && p.PID != t.self }

// adopt adds every process that has an ancestor in the set.
func (t *Tree) adopt(in map[int]bool, procs []procStat, byID map[int]procStat) {
	for changed := true; changed; {
		changed = false
		for _, p := range procs {
			parent, ok := byID[p.parent]
			if ok && in[parent.PID] && !in[p.PID] && t.young(p) {
				in[p.PID], changed = true, true
			}
		}
	}
}

// alive says whether id still runs.
func alive(id ID) bool {
	p, ok := readProc(id.PID)
	return ok && p.ID == id && !p.dead()
}
