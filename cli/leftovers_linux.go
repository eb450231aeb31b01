package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Owner names whose processes a Host starts, the same at every start of one ductor and another for every
// other ductor: its storage directory, for instance. Any text will do.
type Owner string

// NewHostFor is NewHost for a ductor that ends at its start what a former run of it left behind.
func NewHostFor(owner Owner) *Host {
	h := NewHost()
	if self, ok := readProc(os.Getpid()); ok && owner != "" { // there always is one
		h.mark = mark{owner: ownerKey(owner), ductor: self.procID}
	}
	return h
}

// mark says which run of which ductor a process belongs to. The zero mark is nobody's.
type mark struct {
	owner  string // see ownerKey
	ductor procID
}

// ownerKey keeps apart also ductors that have a directory of the same name each: those of other users, and
// those of other containers, whose process numbers mean nothing here.
func ownerKey(owner Owner) string {
	space, _ := os.Readlink("/proc/self/ns/pid") // where it cannot be read, nothing else can be told apart either
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", os.Getuid(), space, owner))
	return hex.EncodeToString(sum[:8])
}

// run is the value of runVar for one start.
func (m mark) run(id string) string {
	if m.owner == "" {
		return id
	}
	return fmt.Sprintf("%s.%d.%d.%s", m.owner, m.ductor.pid, m.ductor.start, id)
}

// parseMark reads what run wrote; false for anything else.
func parseMark(value string) (m mark, ok bool) {
	f := strings.SplitN(value, ".", 4)
	if len(f) < 4 || f[0] == "" || f[3] == "" {
		return mark{}, false
	}
	pid, err := strconv.Atoi(f[1])
	start, err2 := strconv.ParseUint(f[2], 10, 64)
	if err != nil || err2 != nil || pid <= 0 {
		return mark{}, false
	}
	return mark{owner: f[0], ductor: procID{pid: pid, start: start}}, true
}

// markOf is the mark in a process's environment. known is false when that cannot be told now: the process
// is in the middle of an exec.
func markOf(pid int) (m mark, known bool) {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(env) == 0 {
		return mark{}, errors.Is(err, os.ErrPermission)
	}
	for entry := range strings.SplitSeq(string(env), "\x00") {
		if value, ok := strings.CutPrefix(entry, runVar+"="); ok {
			m, _ = parseMark(value)
			return m, true
		}
	}
	return mark{}, true
}

// EndLeftovers ends what earlier runs of this owner's ductor started and could not end, because they were
// killed themselves: TERM, grace, KILL, and looks again until none is left. It returns how many it found.
// What a living ductor started is left alone, and so is this process, its ancestors and its session. The
// grace is cut short when ctx is done. Call it before the first Start. A Host of NewHost has no owner:
// that is an error.
func (h *Host) EndLeftovers(ctx context.Context, grace time.Duration) (int, error) {
	if h.mark.owner == "" {
		return 0, errors.New("end leftovers: this host has no owner")
	}
	l := leftovers{owner: h.mark.owner, known: map[procID]bool{}}
	tree := &procTree{self: os.Getpid()} // of no program: it only lends its ways to end processes
	if err := tree.endThose(ctx, grace, l.members); err != nil {
		return len(l.known), fmt.Errorf("end leftovers: %w", err)
	}
	return len(l.known), nil
}

// leftovers finds what dead ductors of one owner left behind.
type leftovers struct {
	owner string
	known map[procID]bool // every one ever seen
}

// members is like procTree.members.
func (l *leftovers) members() (live []procStat, unsure int, err error) {
	procs, err := allProcs()
	if err != nil {
		return nil, 0, err
	}
	byID := make(map[int]procStat, len(procs))
	for _, p := range procs {
		byID[p.pid] = p
	}
	spared, in, sessions := spare(byID), map[int]bool{}, map[int]bool{}
	for _, p := range procs {
		if p.dead() || spared(p) || kernel(p) {
			continue
		}
		m, known := markOf(p.pid)
		if l.known[p.procID] || known && l.left(m, p) {
			in[p.pid], sessions[p.session] = true, true
		} else if !known {
			unsure++
		}
	}
	for changed := true; changed; {
		changed = false
		for _, p := range procs {
			child := in[p.parent] && p.start >= byID[p.parent].start
			// Sessions are made by the agent or by what it started: who shares one came from there, too.
			if !in[p.pid] && !p.dead() && !spared(p) && (child || sessions[p.session]) {
				in[p.pid], sessions[p.session], changed = true, true, true
			}
		}
	}
	for pid := range in {
		l.known[byID[pid].procID] = true
		live = append(live, byID[pid])
	}
	return live, unsure, nil
}

// left says whether a process with this mark was left behind. Nothing is older than who started it.
func (l *leftovers) left(m mark, p procStat) bool {
	if m.owner != l.owner || p.start < m.ductor.start {
		return false
	}
	ductor, there := readProc(m.ductor.pid)
	return !there || ductor.procID != m.ductor || ductor.dead()
}

// kernel says whether p is a thread of the kernel, which has no environment at any time.
func kernel(p procStat) bool { return p.session == 0 }

// spare says who is not to be touched, whatever mark it has: this process may itself have been started by
// an agent of the ductor that was killed.
func spare(byID map[int]procStat) func(procStat) bool {
	self := byID[os.Getpid()]
	above := map[int]bool{}
	for p, ok := self, true; ok && !above[p.pid]; p, ok = byID[p.parent] {
		above[p.pid] = true
	}
	return func(p procStat) bool { return above[p.pid] || p.session == self.session || p.pid == 1 }
}
