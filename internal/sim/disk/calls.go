package disk

// #cgo linux LDFLAGS: -Wl,--unresolved-symbols=ignore-in-object-files
// #include "vfs.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	_ "github.com/mattn/go-sqlite3" // contains the SQLite that vfs.c calls
)

// Op is a kind of disk operation.
type Op int

const (
	Open     Op = C.op_open // creates a file
	Read     Op = C.op_read
	Write    Op = C.op_write
	Truncate Op = C.op_truncate
	Sync     Op = C.op_sync
	Remove   Op = C.op_remove
	SyncDir  Op = C.op_remove + 1
)

func (o Op) String() string {
	return [...]string{"open", "read", "write", "truncate", "sync", "remove", "sync directory"}[o]
}

func init() {
	if code := C.sim_register(); code != 0 {
		panic(fmt.Sprint("SQLite did not take the simulated disk: error ", code))
	}
}

// CountedMemory returns the number of bytes that SQLite has allocated and not freed. It returns 0 if SQLite does not
// count them.
func CountedMemory() int64 { return int64(C.sqlite3_memory_used()) }

type handle struct {
	disk *Disk
	life *life
	file *file
	name string
	// journal is true if the file is a new write-ahead log or rollback journal. The first sync of such a file also
	// syncs the directory.
	journal atomic.Bool
}

// handles contains the open files, by the number that the C code uses.
var (
	handles    sync.Map
	lastHandle atomic.Int64
)

func handleOf(number C.sqlite3_int64) *handle {
	h, _ := handles.Load(int64(number))
	return h.(*handle)
}

// locate returns the simulated disk to which a path belongs, and the name of the file on the disk.
func locate(path *C.char) (d *Disk, name string) {
	dir, name := filepath.Split(C.GoString(path))
	found, ok := disks.Load(filepath.Clean(dir))
	if !ok {
		return nil, ""
	}
	return found.(*Disk), name
}

//export simOpen
func simOpen(path *C.char, create, journal C.int, number *C.sqlite3_int64) C.int {
	d, name := locate(path)
	if d == nil {
		return 0
	}
	now, f, err := d.find(name)
	switch {
	case err == nil: // the file exists
	case !errors.Is(err, os.ErrNotExist):
		return C.int(syscall.EIO)
	case create == 0:
		return C.int(syscall.ENOENT)
	default:
		f = newFile()
		if no := d.perform(Call{Op: Open, Name: name, Grows: true}, now, f, &transfer{}); no != 0 {
			return C.int(no)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.over {
		return C.int(syscall.EIO)
	}
	h := &handle{disk: d, life: now, file: f, name: name}
	h.journal.Store(journal != 0)
	f.handles[h] = true
	f.descriptor(h)
	n := lastHandle.Add(1)
	handles.Store(n, h)
	*number = C.sqlite3_int64(n)
	return 0
}

//export simClose
func simClose(number C.sqlite3_int64) {
	h := handleOf(number)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	delete(h.file.handles, h)
	delete(h.file.reported, h)
	handles.Delete(int64(number))
}

//export simDead
func simDead(number C.sqlite3_int64) C.int {
	h := handleOf(number)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.life.over {
		return 1
	}
	return 0
}

//export simCall
func simCall(
	number C.sqlite3_int64, op C.int, offset C.sqlite3_int64, size C.int, data unsafe.Pointer, allowed *C.int,
) C.int {
	h := handleOf(number)
	c := Call{Op: Op(op), Name: h.name, Offset: int64(offset), Size: int(size)}
	w := &transfer{by: h}
	if c.Op == Write {
		w.data = C.GoBytes(data, size)
	}
	no := h.disk.perform(c, h.life, h.file, w)
	if allowed != nil {
		*allowed = C.int(w.done)
	}
	if no == 0 && c.Op == Sync && h.journal.Load() {
		if no = h.disk.perform(Call{Op: SyncDir, Name: "."}, h.life, nil, &transfer{}); no == 0 {
			h.journal.Store(false)
		}
	}
	return C.int(no)
}

//export simRemove
func simRemove(path *C.char, syncDir C.int, ours *C.int) C.int {
	d, name := locate(path)
	if d == nil {
		return 0
	}
	*ours = 1
	now, _, err := d.find(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0 // vfs.c makes the system call itself, which returns the error for SQLite
	case err != nil:
		return C.int(syscall.EIO)
	}
	no := d.perform(Call{Op: Remove, Name: name}, now, nil, &transfer{})
	if no == 0 && syncDir != 0 {
		no = d.perform(Call{Op: SyncDir, Name: "."}, now, nil, &transfer{})
	}
	return C.int(no)
}

//export simSleep
func simSleep(microseconds C.int) { time.Sleep(time.Duration(microseconds) * time.Microsecond) }

//export simNow
func simNow() C.sqlite3_int64 { return C.sqlite3_int64(time.Now().UnixMilli()) }

// transfer contains the data that a call reads or writes.
type transfer struct {
	by   any // the *handle or *os.File with which the program makes the call
	data []byte
	done int // number of bytes written
}

// perform performs a call with the fault that the test chooses. It returns 0 or an error number. If the process that
// makes the call has crashed, it returns EIO.
func (d *Disk) perform(c Call, now *life, f *file, w *transfer) syscall.Errno {
	fault, dead := d.decide(&c, now, f)
	if dead {
		return syscall.EIO
	}
	if fault.Delay > 0 {
		time.Sleep(fault.Delay)
	}
	d.mu.Lock()
	if now.over { // the process has crashed during the delay
		d.mu.Unlock()
		return syscall.EIO
	}
	if fault.Crash != NoCrash {
		d.tear(c, f, w, fault.Crash)
		d.mu.Unlock()
		d.Crash(fault.Crash)
		return syscall.EIO
	}
	defer d.mu.Unlock()
	if fault.Err != 0 {
		d.fail(c, f, w, fault)
		return fault.Err
	}
	if fault.Lie && (c.Op == Sync || c.Op == SyncDir) {
		return 0
	}
	d.effect(c, f, w)
	if c.Op == Sync {
		return f.unreportedFailure(w.by)
	}
	return 0
}

// decide counts a call and returns the fault that the test chose for the call (d.faults). dead is true if the process
// has crashed.
func (d *Disk) decide(c *Call, now *life, f *file) (fault Fault, dead bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.over {
		return Fault{}, true
	}
	if d.counts[c.Op]++; c.Op != Read {
		d.calls++
	}
	c.Number = d.calls
	switch c.Op {
	case Write:
		c.Grows = c.Offset+int64(c.Size) > int64(len(f.cache))
	case Sync:
		c.Grows = f.grows()
	}
	if d.faults != nil {
		fault = d.faults(*c)
	}
	return fault, false
}

// effect performs the whole call as if there was no fault. The caller holds mu.
func (d *Disk) effect(c Call, f *file, w *transfer) {
	switch c.Op {
	case Open:
		d.names[c.Name] = f
	case Write:
		f.change(change{offset: c.Offset, data: w.data})
		w.done = len(w.data)
	case Truncate:
		f.change(change{offset: c.Offset, truncate: true})
	case Sync:
		f.sync()
	case Remove:
		delete(d.names, c.Name)
	case SyncDir:
		clear(d.durable)
		for name, f := range d.names {
			d.durable[name] = f
		}
	}
}

// fail simulates a call that fails. A part of the call may take effect. The caller holds mu.
func (d *Disk) fail(c Call, f *file, w *transfer, fault Fault) {
	switch c.Op {
	case Write:
		w.done = d.random.IntN(len(w.data)/2 + 1)
		f.change(change{offset: c.Offset, data: bytes.Clone(w.data[:w.done])})
	case Sync:
		f.failSync(d.random, fault.Err)
		f.reported[w.by] = f.failures
		if fault.Evict {
			d.evict(c.Name, f)
		}
	}
}

// tear simulates a call during which the process crashes. A part of the call may take effect. The caller holds mu.
func (d *Disk) tear(c Call, f *file, w *transfer, how Crash) {
	switch {
	case c.Op == Read:
	case c.Op == Write && how == Kill: // the kernel writes page by page, and stops between two pages
		page := int(c.Offset/pageSize+1)*pageSize - int(c.Offset)
		done := min(len(w.data), d.random.IntN(len(w.data)/pageSize+2)*page)
		f.change(change{offset: c.Offset, data: w.data[:done]})
	case c.Op == Sync && d.random.IntN(2) == 0:
		// This sync has no effect. If the power fails, losePower writes random parts of the changes to the medium.
	case d.random.IntN(2) == 0:
		d.effect(c, f, w)
		w.done = 0 // the program has crashed, so the call must return no result
	}
}

// evict drops the cached pages that a failed sync did not write. Programs then read the old content of these pages from
// the medium.
func (d *Disk) evict(name string, f *file) {
	if d.names[name] != f {
		return
	}
	content := f.evict()
	out, err := os.OpenFile(d.path(name), os.O_WRONLY, 0)
	if err != nil {
		return // the file was removed, so no program can read it
	}
	_, _ = out.WriteAt(content, 0)
	_ = out.Close()
}
