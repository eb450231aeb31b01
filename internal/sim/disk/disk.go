// Package disk simulates a disk under SQLite for tests. The disk can fail like a real one. In a power failure, it loses
// data that was not synced.
//
// SQLite uses files in a real directory, with its own locks and shared memory, so that connections interact as in
// production. The package installs a VFS between SQLite and these files. The VFS is the default in each process that
// links this package. It forwards calls for all other directories to the system. For each file, a Disk records the
// content that programs read, the content on the medium, and the changes that have not reached the medium yet. A Disk
// counts the calls that change something. The test sets a function that decides which calls fail, take long, or crash
// the process.
//
// A program that syncs a file without SQLite must call Disk.Sync. The simulation only knows files that SQLite has
// opened or that were passed to Sync.
package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	_ "ductor/internal/store/sqlite/compiler" // makes a build without a C compiler fail with a clear error
)

// Crash is how a process ends.
type Crash int

const (
	NoCrash Crash = iota
	Kill          // the process is killed; the kernel later writes everything to the medium
	Power         // the machine loses power; only data on the medium survives
)

// Call is a call of a program to the disk.
type Call struct {
	Op     Op
	Name   string // name of the file in the disk's directory; "." for the directory itself
	Number int    // sequence number; calls that read are not counted
	Offset int64
	Size   int
	Grows  bool // the file needs more space on the medium than before
}

// Fault defines how a call fails. The zero value means that the call succeeds.
type Fault struct {
	Delay time.Duration // a pause before the call
	Crash Crash         // the process crashes during the call; a part of the call may take effect
	Err   syscall.Errno // the call fails with EIO or ENOSPC
	Evict bool          // the sync fails, and programs then read the old content of the unsynced pages from the medium
	Lie   bool          // a sync reports success, but does nothing
}

// Disk is a simulated disk that contains the files of one directory. It is safe for concurrent use.
type Disk struct {
	dir string

	mu      sync.Mutex
	random  *rand.Rand
	faults  func(Call) Fault
	onCrash func(Crash)
	counts  map[Op]int
	calls   int
	names   map[string]*file // files as programs see them
	durable map[string]*file // files as they are on the medium
	crashed Crash
	life    *life
}

// life is the time between two crashes. A file handle works only during the life in which it was opened.
type life struct{ over bool }

// disks contains all simulated disks, by directory.
var disks sync.Map

// New returns a disk that contains the files of a directory. All these files count as synced. The seed determines which
// data a crash loses.
func New(dir string, seed uint64) (*Disk, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("simulate a disk: %w", err)
	}
	d := &Disk{
		dir: dir, random: rand.New(rand.NewPCG(seed, 0)), counts: map[Op]int{}, life: &life{},
		names: map[string]*file{}, durable: map[string]*file{},
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("simulate a disk: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		content, err := os.ReadFile(d.path(e.Name()))
		if err != nil {
			return nil, fmt.Errorf("simulate a disk: %w", err)
		}
		f := durableFile(content)
		d.names[e.Name()], d.durable[e.Name()] = f, f
	}
	if _, found := disks.LoadOrStore(dir, d); found {
		return nil, fmt.Errorf("simulate a disk: %s is one already", dir)
	}
	return d, nil
}

// Close ends the simulation. The real files have the content that programs last saw.
func (d *Disk) Close() { disks.Delete(d.dir) }

func (d *Disk) path(name string) string { return filepath.Join(d.dir, name) }

// SetFaults sets the function that chooses the fault of each call. If it is nil, no call fails. The function must not
// use the disk.
func (d *Disk) SetFaults(f func(Call) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = f
}

// OnCrash sets a function that the disk calls when a call crashes the process, before the crashing call returns. The
// function must cut the process's other connections, so that the process has no effect after its crash.
func (d *Disk) OnCrash(f func(Crash)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onCrash = f
}

// Calls returns the number of calls that tried to change something, including failed calls.
func (d *Disk) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Count returns the number of calls of a kind.
func (d *Disk) Count(op Op) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[op]
}

// Crash crashes the process now, unless it has already crashed. All calls fail until Restart.
func (d *Disk) Crash(how Crash) {
	if tell := d.end(how); tell != nil {
		tell(how)
	}
}

// Exit ends the process like Crash(Kill), but does not call the function that OnCrash set. It reports whether the
// process was running. If so, the caller must call Restart.
func (d *Disk) Exit() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed != NoCrash {
		return false
	}
	d.crashed, d.life.over = Kill, true
	return true
}

// end ends the current life. It returns the function that OnCrash set, or nil if the process had already crashed.
func (d *Disk) end(how Crash) func(Crash) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed != NoCrash {
		return nil
	}
	d.crashed, d.life.over = how, true
	if how == Power {
		d.losePower()
	}
	return d.onCrash
}

// losePower simulates a power failure. It drops data that is not on the medium, except for random parts.
func (d *Disk) losePower() {
	all := map[string]*file{}
	for _, name := range d.allNames() {
		f, other := d.durable[name], d.names[name]
		if f != other && d.random.IntN(2) == 0 {
			f = other
		}
		if f != nil {
			all[name] = durableFile(f.survive(d.random))
		}
	}
	d.removable(all)
	d.names, d.durable = all, map[string]*file{}
	for name, f := range all {
		d.durable[name] = f
	}
}

// removable records the names of files that Restart must delete.
func (d *Disk) removable(all map[string]*file) {
	for name := range d.names {
		if all[name] == nil {
			all[name] = nil
		}
	}
}

// allNames lists the names of all files. They are sorted, so that the same seed gives the same result.
func (d *Disk) allNames() []string {
	var all []string
	for name := range d.names {
		all = append(all, name)
	}
	for name := range d.durable {
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Restart ends a crash. The disk then contains the files that have survived.
func (d *Disk) Restart() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed == NoCrash {
		return errors.New("restart a simulated disk: it did not crash")
	}
	// Replace all files, so that descriptors from before the crash have no effect.
	for _, name := range d.allNames() {
		// Also remove SQLite's shared memory, which no longer matches the files. SQLite creates a new one.
		for _, end := range []string{"", "-shm"} {
			if err := os.Remove(d.path(name + end)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("restart a simulated disk: %w", err)
			}
		}
		f := d.names[name]
		if f == nil {
			delete(d.names, name)
			delete(d.durable, name)
			continue
		}
		clear(f.handles)
		if err := os.WriteFile(d.path(name), f.cache, 0o600); err != nil {
			return fmt.Errorf("restart a simulated disk: %w", err)
		}
	}
	d.crashed, d.life = NoCrash, &life{}
	return nil
}

// Sync syncs a file or a directory. Programs must call it instead of f.Sync.
func (d *Disk) Sync(f *os.File) error {
	path, err := filepath.Abs(f.Name())
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	switch d.dir {
	case path:
		now, _, _ := d.find("")
		return errnoOrNil(d.perform(Call{Op: SyncDir, Name: "."}, now, nil, &transfer{}))
	case filepath.Dir(path):
		now, known, err := d.find(name)
		if err == nil {
			err = d.noteWrites(f, known)
		}
		if err != nil {
			return err
		}
		return errnoOrNil(d.perform(Call{Op: Sync, Name: name}, now, known, &transfer{by: f}))
	}
	return f.Sync()
}

// noteWrites handles a file that the program may have written with f. The Disk sees only the writes of SQLite. So
// noteWrites records a write of the whole file, unless f is read-only. If SQLite does not have the file open,
// known.cache already contains the current content, because find has read it.
func (d *Disk) noteWrites(f *os.File, known *file) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(known.handles) == 0 {
		known.rewriteCache()
		return nil
	}
	content, err := os.ReadFile(f.Name())
	if err == nil {
		known.rewrite(content)
	}
	return err
}

// find returns the current life, and the file with this name. If name is empty, the returned file is nil.
func (d *Disk) find(name string) (*life, *file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if name == "" {
		return d.life, nil, nil
	}
	if d.crashed != NoCrash {
		return d.life, nil, syscall.EIO
	}
	f, err := d.lookUp(name)
	return d.life, f, err
}

func errnoOrNil(no syscall.Errno) error {
	if no == 0 {
		return nil
	}
	return no
}

// lookUp returns the file with this name, even if a program created the file without SQLite. The caller holds mu.
func (d *Disk) lookUp(name string) (*file, error) {
	f := d.names[name]
	if f != nil && len(f.handles) > 0 {
		return f, nil
	}
	content, err := os.ReadFile(d.path(name))
	if err != nil {
		delete(d.names, name)
		return nil, err
	}
	if f == nil {
		f = newFile()
		d.names[name] = f
	}
	f.replace(content)
	return f, nil
}
