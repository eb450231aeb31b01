package cli

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// procID is a process that cannot be confused with a later one of the same number.
type procID struct {
	pid   int
	start uint64 // clock ticks since boot
}

type procStat struct {
	procID
	parent, group, session int
	threads                int
	state                  byte
}

// dead says whether nothing of the process runs. A first thread that ended does not make a zombie of the
// others, and cannot be reaped before them.
func (p procStat) dead() bool { return (p.state == 'Z' || p.state == 'X') && p.threads <= 1 }

// readProc looks a process up; false if there is none.
func readProc(pid int) (procStat, bool) {
	return readProcIn(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid)+"/stat", pid)
}

// readProcIn is readProc for a stat file at a path that may start from a directory.
func readProcIn(dir int, path string, pid int) (procStat, bool) {
	var buf [512]byte // a stat line is shorter, and there are hundreds to read while somebody waits
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return procStat{}, false
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return procStat{}, false
	}
	return parseStat(pid, buf[:n])
}

// parseStat reads a line of /proc/<pid>/stat. The name in it may hold spaces and parentheses.
func parseStat(pid int, raw []byte) (procStat, bool) {
	i := bytes.LastIndexByte(raw, ')')
	if i < 0 {
		return procStat{}, false
	}
	const state, parent, group, session, threads, startTime = 0, 1, 2, 3, 17, 19
	p := procStat{procID: procID{pid: pid}}
	ok := true
	rest := raw[i+1:]
	for at := state; at <= startTime; at++ {
		var field []byte
		field, rest = nextField(rest)
		switch at {
		case state:
			if ok = len(field) == 1; ok {
				p.state = field[0]
			}
		case parent:
			p.parent, ok = number(field, ok)
		case group:
			p.group, ok = number(field, ok)
		case session:
			p.session, ok = number(field, ok)
		case threads:
			p.threads, ok = number(field, ok)
		case startTime:
			var start int
			start, ok = number(field, ok)
			p.start = uint64(start)
		}
		if !ok {
			return procStat{}, false
		}
	}
	return p, true
}

// nextField splits the first word off.
func nextField(b []byte) (field, rest []byte) {
	b = bytes.TrimLeft(b, " \n")
	if i := bytes.IndexAny(b, " \n"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}

// number reads a number, if all went well before.
func number(field []byte, ok bool) (int, bool) {
	n, err := strconv.Atoi(string(field))
	return n, ok && err == nil
}

// allProcs lists every process there is.
func allProcs() ([]procStat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	procs := make([]procStat, 0, len(names))
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcIn(int(dir.Fd()), name+"/stat", pid); ok {
			procs = append(procs, p)
		}
	}
	return procs, nil
}

// marked says whether a process carries the variable entry ("NAME=value"). known is false when that
// cannot be told now: the process is in the middle of an exec, or is not ours to look into.
func marked(pid int, entry string) (yes, known bool) {
	env, err := readWhole("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(env) == 0 {
		return false, errors.Is(err, os.ErrPermission)
	}
	return bytes.HasPrefix(env, []byte(entry+"\x00")) || bytes.Contains(env, []byte("\x00"+entry+"\x00")), true
}

// readWhole reads a file of the kernel's, without the poller that os.File would try.
func readWhole(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	all := make([]byte, 0, 4<<10)
	for {
		n, err := unix.Read(fd, all[len(all):cap(all)])
		if n <= 0 || err != nil {
			return all, err
		}
		if all = all[:len(all)+n]; len(all) == cap(all) {
			all = slices.Grow(all, len(all))
		}
	}
}

// procTree finds what a program started, also what left its group, its session and its parent.
type procTree struct {
	root  procID
	entry string // the environment marker
	self  int
	known map[procID]bool // every member ever seen
}

func newProcTree(root procID, run string) *procTree {
	return &procTree{root: root, entry: runVar + "=" + run, self: os.Getpid(), known: map[procID]bool{root: true}}
}

// members lists the members that are alive. unsure counts processes that may be members and could not
// be looked into at this moment.
func (t *procTree) members() (live []procStat, unsure int, err error) {
	procs, err := allProcs()
	if err != nil {
		return nil, 0, err
	}
	byID := make(map[int]procStat, len(procs))
	for _, p := range procs {
		byID[p.pid] = p
	}
	leader, there := byID[t.root.pid]
	reused := there && leader.start != t.root.start

	in := map[int]bool{}
	for _, p := range procs {
		grouped := !reused && (p.session == t.root.pid || p.group == t.root.pid)
		if t.known[p.procID] || grouped && t.young(p) {
			in[p.pid] = true
		}
	}
	t.adopt(in, procs, byID)
	for _, p := range procs {
		if in[p.pid] || !t.young(p) || p.dead() {
			continue
		}
		yes, known := marked(p.pid, t.entry)
		if yes {
			in[p.pid] = true
		}
		if !known && (p.parent == 1 || p.parent == t.self) {
			unsure++
		}
	}
	t.adopt(in, procs, byID)
	for pid := range in {
		p := byID[pid]
		t.known[p.procID] = true
		if !p.dead() {
			live = append(live, p)
		} else if p.parent == t.self && p.procID != t.root {
			reap(p.procID)
		}
	}
	return live, unsure, nil
}

// young says whether p may descend from the root: nothing is older than its ancestor.
func (t *procTree) young(p procStat) bool { return p.start >= t.root.start && p.pid != t.self }

// adopt adds every process that has an ancestor in the set.
func (t *procTree) adopt(in map[int]bool, procs []procStat, byID map[int]procStat) {
	for changed := true; changed; {
		changed = false
		for _, p := range procs {
			parent, ok := byID[p.parent]
			if ok && in[parent.pid] && !in[p.pid] && t.young(p) {
				in[p.pid], changed = true, true
			}
		}
	}
}

// alive says whether id still runs. A dead orphan that was handed to us is reaped on the way.
func (t *procTree) alive(id procID) bool {
	p, ok := readProc(id.pid)
	if !ok || p.procID != id {
		return false
	}
	if p.dead() && p.parent == t.self && id != t.root {
		reap(id)
	}
	return !p.dead()
}

// signal sends sig to id and to no later process of the same number.
func (id procID) signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(id.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if p, ok := readProc(id.pid); !ok || p.procID != id {
		return nil
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else { // a kernel or a sandbox without pidfd
		err = unix.Kill(id.pid, sig)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// killGroup kills p's group in one step, which outruns a program that forks faster than we look. The
// group holds nobody else: sessions are made by the program or by what it started.
func killGroup(p procStat, self int) {
	own, ok := readProc(self)
	now, there := readProc(p.pid)
	if !ok || !there || now.procID != p.procID || now.session == own.session || now.group <= 1 {
		return
	}
	_ = unix.Kill(-now.group, unix.SIGKILL) // whom it misses, the next look finds
}

// reap takes the exit status of a dead child of ours, if id is one.
func reap(id procID) {
	fd, err := unix.PidfdOpen(id.pid, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if p, ok := readProc(id.pid); !ok || p.procID != id || !p.dead() {
		return
	}
	if err == nil {
		_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG, nil)
		return
	}
	_, _ = unix.Wait4(id.pid, nil, unix.WNOHANG, nil)
}
