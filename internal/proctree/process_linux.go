package proctree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ID identifies a process. Unlike a PID, an ID is not reused during the same boot.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // start of the process in clock ticks since boot
}

// LookUp returns the process that currently has this PID. It returns false if there is none.
func LookUp(pid int) (ID, bool) {
	p, ok := readProc(pid)
	return p.ID, ok
}

// Running reports whether exactly this process is still running. A zombie is not running.
func (id ID) Running() bool {
	p, ok := readProc(id.PID)
	return ok && p.ID == id && !p.dead()
}

// Signal sends a signal to this process. It never signals a later process with the same PID. It returns nil if this
// process has ended.
func (id ID) Signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if p, ok := readProc(id.PID); !ok || p.ID != id {
		return nil
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	} else { // the kernel or a sandbox does not support pidfd
		err = unix.Kill(id.PID, sig)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

type procStat struct {
	ID
	parent, group, session int
	threads                int
	state                  byte
}

// dead reports whether all threads of the process have ended. If only the first thread has ended, the process is listed
// as a zombie, but its parent cannot reap it yet.
func (p procStat) dead() bool { return (p.state == 'Z' || p.state == 'X') && p.threads <= 1 }

func (p procStat) stopped() bool { return p.state == 'T' }

func readProc(pid int) (procStat, bool) {
	var buf [512]byte // larger than any stat line; not on the heap, because a scan reads hundreds of lines
	return parseStat(pid, readSmall("/proc/"+strconv.Itoa(pid)+"/stat", buf[:]))
}

// readSmall reads the beginning of a file into buf. It avoids os.File, which would register the file with the poller.
func readSmall(path string, buf []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// parseStat parses /proc/<pid>/stat up to the start time. The name of the process may contain spaces and parentheses.
// parseStat does not allocate, because a scan parses hundreds of lines.
func parseStat(pid int, raw []byte) (procStat, bool) {
	const parent, group, session, threads, startTime = 1, 2, 3, 17, 19
	p := procStat{ID: ID{PID: pid}}
	i := bytes.LastIndexByte(raw, ')')
	if i < 0 {
		return p, false
	}
	rest := bytes.TrimLeft(raw[i+1:], " ")
	for field := 0; len(rest) > 0; field++ {
		var f []byte
		var err error
		f, rest, _ = bytes.Cut(rest, []byte(" ")) // not bytes.FieldsSeq, which would move readProc's buffer to the heap
		switch field {
		case 0:
			p.state = f[0]
			if len(f) != 1 {
				return p, false
			}
		case parent:
			p.parent, err = strconv.Atoi(string(f))
		case group:
			p.group, err = strconv.Atoi(string(f))
		case session:
			p.session, err = strconv.Atoi(string(f))
		case threads:
			p.threads, err = strconv.Atoi(string(f))
		case startTime:
			p.Start, err = strconv.ParseUint(string(f), 10, 64)
			return p, err == nil
		}
		if err != nil {
			return p, false
		}
	}
	return p, false
}

// eachProc calls visit for every process, in the order of PIDs. It reads the PIDs in small batches, so that it visits
// each process soon after reading the PID. If a process ends before its visit, eachProc usually still visits the
// children of the process, because children usually have higher PIDs.
func eachProc(visit func(procStat)) error {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /proc: %w", err)
	}
	defer unix.Close(fd)
	var buf [512]byte // space for about 16 entries of the directory
	names := make([]string, 0, 32)
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list /proc: %w", err)
		}
		if n == 0 {
			return nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				if p, ok := readProc(pid); ok {
					visit(p)
				}
			}
		}
	}
}

// hasEnviron reports whether the environment of a process contains any of the entries ("NAME=value"). If the process
// belongs to another user and this user may not inspect it, hasEnviron returns false, true. If the process cannot be
// inspected at the moment because it is in an exec, hasEnviron returns false, false.
func hasEnviron(pid int, entries ...string) (yes, known bool) {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || len(env) == 0 {
		return false, errors.Is(err, os.ErrPermission)
	}
	return slices.ContainsFunc(entries, func(entry string) bool {
		return bytes.HasPrefix(env, []byte(entry+"\x00")) || bytes.Contains(env, []byte("\x00"+entry+"\x00"))
	}), true
}

// Name returns the name of a process as in ps, or "" if the process has ended.
func Name(pid int) string {
	var buf [64]byte // the kernel stores at most 15 characters
	return strings.TrimSpace(string(readSmall("/proc/"+strconv.Itoa(pid)+"/comm", buf[:])))
}

// Resident returns the resident memory of a process in bytes, including shared pages. It returns 0 if the process has
// ended.
func Resident(pid int) int64 {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(raw))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// BootID returns the ID of the machine's current boot, or "" if it is unknown. PIDs from another boot are meaningless.
var BootID = sync.OnceValue(func() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
})
