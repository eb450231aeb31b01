// Package disk simulates a disk below SQLite, for tests: it fails as disks do, and forgets at a power failure what was
// not brought to it.
//
// SQLite works on files of a real directory, with its own locks and shared memory, so that connections meet each other
// as in production. Between SQLite and the files stands a VFS, which is the default of each process that links this
// package. It passes on what concerns other directories. For each file of a Disk it notes what programs read, what the
// medium holds, and what is between the two. A Disk counts the calls that change something, and a function of the test
// says which of them fail, take long or are the end of the process.
//
// A program that syncs a file itself calls Disk.Sync instead. Files that neither SQLite opened nor Sync synced are not
// part of the simulation.
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

	_ "ductor/internal/store/sqlite/compiler" // is there, or this package is not compiled
)

// Crash is a kind of end.
type Crash int

const (
	NoCrash Crash = iota
	Kill          // the process ends; the kernel goes on, and brings everything to the medium some time
	Power         // the machine ends; what the medium does not hold is lost
)

// Call is a call that a program makes.
type Call struct {
	Op     Op
	Name   string // of the file, in the directory of the disk; that of the directory is "."
	Number int    // of calls that change something, from 1; a Read has that of the last one
	Offset int64
	Size   int
	Grows  bool // it needs room
}

// Fault is what happens at a call. The zero value is nothing.
type Fault struct {
	Delay time.Duration // first of all
	Crash Crash         // at this call, of which a part may have happened
	Err   syscall.Errno // EIO, or ENOSPC
	Evict bool          // after a sync that failed, programs read what the medium holds instead of what they wrote
	Lie   bool          // a sync reports success, and nothing is on the medium
}

// Disk is a simulated disk that holds the files of one directory. Safe for concurrent use.
type Disk struct {
	dir string

	mu      sync.Mutex
	random  *rand.Rand
	faults  func(Call) Fault
	onCrash func(Crash)
	counts  map[Op]int
	calls   int
	names   map[string]*file // as programs see them
	durable map[string]*file // as the medium has them
	crashed Crash
	life    *life
}

// life is the time between two crashes. What was opened in a life that is over fails.
type life struct{ over bool }

// disks are those that a VFS has to look at, by directory.
var disks sync.Map

// New makes a disk of the files of a directory, all of which the medium holds. The seed decides what a crash leaves.
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

// Close ends the simulation. The files stay as programs saw them last.
func (d *Disk) Close() { disks.Delete(d.dir) }

func (d *Disk) path(name string) string { return filepath.Join(d.dir, name) }

// SetFaults sets the function that decides what happens at each call; nil for nothing. It must not call the disk.
func (d *Disk) SetFaults(f func(Call) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = f
}

// OnCrash sets a function that is called in the middle of the call at which a crash happens, before that call fails. It
// has to cut off all by which the process could still be heard.
func (d *Disk) OnCrash(f func(Crash)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onCrash = f
}

// Calls returns how many calls changed something, or tried to.
func (d *Disk) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Count returns how many calls of a kind there were.
func (d *Disk) Count(op Op) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts[op]
}

// Crash ends the process now, if it runs: all calls fail until Restart.
func (d *Disk) Crash(how Crash) {
	if tell := d.end(how); tell != nil {
		tell(how)
	}
}

// end begins the time after a crash, and returns whom to tell.
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

// losePower forgets what the medium does not hold.
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

// removable keeps names in mind that the next Restart has to remove.
func (d *Disk) removable(all map[string]*file) {
	for name := range d.names {
		if all[name] == nil {
			all[name] = nil
		}
	}
}

// allNames lists the names of files in order, so that the seed decides the same each time.
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

// Restart begins the next life after a crash with the files that it left.
func (d *Disk) Restart() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed == NoCrash {
		return errors.New("restart a simulated disk: it did not crash")
	}
	// Every file is a new one to the kernel. What the last life holds open cannot disturb this one.
	for _, name := range d.allNames() {
		for _, end := range []string{"", "-shm"} { // the first connection makes the shared memory anew
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

// Sync brings a file or directory to the medium, for programs that do so without SQLite.
func (d *Disk) Sync(f *os.File) error {
	path, err := filepath.Abs(f.Name())
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	switch d.dir {
	case path:
		now, _, _ := d.find("")
		return errnoOrNil(d.do(Call{Op: SyncDir, Name: "."}, now, nil, &effort{}))
	case filepath.Dir(path):
		now, known, err := d.find(name)
		if err == nil {
			err = d.noteWrites(f, known)
		}
		if err != nil {
			return err
		}
		return errnoOrNil(d.do(Call{Op: Sync, Name: name}, now, known, &effort{by: f}))
	}
	return f.Sync()
}

// noteWrites notes what a program wrote through a descriptor of its own: all, if it can write.
func (d *Disk) noteWrites(f *os.File, known *file) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY {
		return err
	}
	content, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known.rewrite(content)
	return nil
}

// find returns the life that is, and a file that is there.
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

// lookUp finds a file that is there, also one that a program made without SQLite. It is called with mu held.
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
