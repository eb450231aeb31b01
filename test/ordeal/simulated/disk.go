package simulated

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"ductor/internal/app"
	"ductor/internal/sim/disk"
	"ductor/internal/store"
	"ductor/internal/store/sqlite"
	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// storage is ductor's state directory. The database is on a simulated disk. The other files are in a real directory,
// and are copied when ductor dies.
type storage struct {
	dir, copy string
	world     *World
	medium    *disk.Disk

	mu      sync.Mutex
	faults  []*diskFault
	failed  []judge.DiskFailure
	left    []func() error // each closes a database that ductor had open when the world ended ductor
	changed time.Time      // time of the last change of the database
}

// diskFault is a fault of the disk that the scenario has caused.
type diskFault struct {
	scenario.Disk
	until time.Time
	hits  int
	seen  int
}

func newStorage(w *World, seed uint64) *storage {
	d := &storage{dir: w.path("state"), copy: w.path("frozen"), world: w}
	err := prepare(filepath.Join(d.dir, app.DatabaseFile), seed)
	if err != nil {
		w.t.Fatal(err)
	}
	if d.medium, err = disk.New(d.dir, seed); err != nil {
		w.t.Fatal(err)
	}
	d.medium.SetFaults(d.fault)
	d.medium.OnCrash(func(disk.Crash) { w.current().die() })
	return d
}

// One in freshEvery scenarios begins without a database. The others begin with an empty database, which saves time.
const freshEvery = 10

// empty returns the database file of a new ductor.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "ordeal-empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, app.DatabaseFile)
	db, err := store.Open(context.Background(), path, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Prepare creates the empty database that New copies for each scenario. Call Prepare outside of a synctest bubble.
func Prepare() error {
	_, err := empty()
	return err
}

func prepare(path string, seed uint64) error {
	if seed%freshEvery == 0 {
		return nil
	}
	text, err := empty()
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func (d *storage) options() store.Options {
	return store.Options{SQLite: sqlite.Options{Sync: d.medium.Sync, LeftOpen: func(release func() error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.left = append(d.left, release)
	}}}
}

// release closes the files that an ended process left open. In reality the kernel closes such files, and changes
// nothing in them. SQLite, however, would delete its log when it closes a file. Therefore all calls of SQLite to the
// disk fail during release.
func (d *storage) release() error {
	d.mu.Lock()
	left := d.left
	d.left = nil
	d.mu.Unlock()
	if len(left) == 0 {
		return nil
	}
	exited := d.medium.Exit()
	for _, f := range left {
		_ = f() // errors are normal, because all calls to the disk fail now
	}
	if exited {
		return d.medium.Restart()
	}
	return nil
}

// inject causes a fault of the disk.
func (d *storage) inject(s scenario.Disk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &diskFault{Disk: s}
	if s.For > 0 && s.Fault != scenario.DiskSlow {
		f.until = time.Now().Add(s.For)
	}
	d.faults = append(d.faults, f)
}

// failures returns the calls that failed or were slow. It never returns nil.
func (d *storage) failures() []judge.DiskFailure {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]judge.DiskFailure{}, d.failed...)
}

func (d *storage) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = nil
}

// fault returns the fault for a call. It combines all active faults.
func (d *storage) fault(c disk.Call) disk.Fault {
	if how := d.world.current().diskStep(c.Op); how != disk.NoCrash {
		return disk.Fault{Crash: how}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Op == disk.Write || c.Op == disk.Truncate {
		d.changed = time.Now()
	}
	for _, f := range d.faults {
		if found := f.effectOn(c); found != (disk.Fault{}) {
			d.failed = append(d.failed, judge.DiskFailure{Fault: f.Fault, At: time.Now()})
			return found
		}
	}
	return disk.Fault{}
}

// effectOn returns the effect of a single fault on a call.
func (f *diskFault) effectOn(c disk.Call) (found disk.Fault) {
	flushes := c.Op == disk.Sync || c.Op == disk.SyncDir
	switch f.Fault {
	case scenario.DiskFull:
		if c.Grows {
			found.Err = syscall.ENOSPC
		}
	case scenario.DiskEIO:
		found.Err = syscall.EIO
	case scenario.DiskFsync:
		if flushes {
			found.Err, found.Evict = syscall.EIO, true
		}
	case scenario.DiskSlow:
		if flushes {
			found.Delay = f.For
		}
	}
	if found == (disk.Fault{}) {
		return found
	}
	switch f.seen++; {
	case !f.until.IsZero() && time.Now().Before(f.until):
	case f.until.IsZero() && f.seen > f.Skip && f.hits < max(1, f.Times):
	default:
		return disk.Fault{}
	}
	f.hits++
	return found
}

// isDatabase reports whether a file of the state directory belongs to the database, which is on the simulated disk.
func isDatabase(name string) bool {
	end, ok := strings.CutPrefix(name, app.DatabaseFile)
	return ok && (end == "" || end == "-wal" || end == "-shm" || end == "-journal")
}

// setTimes sets the modification times of the database and its directory to the simulated time of the last write. If
// the database is damaged, ductor takes the time of the last write from the modification times (see store.Rescue).
func (d *storage) setTimes() error {
	d.mu.Lock()
	at := d.changed
	d.mu.Unlock()
	if at.IsZero() {
		at = time.Now()
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("set the times of the database: %w", err)
	}
	paths := []string{d.dir}
	for _, e := range entries {
		if isDatabase(e.Name()) {
			paths = append(paths, filepath.Join(d.dir, e.Name()))
		}
	}
	for _, path := range paths {
		if err := os.Chtimes(path, at, at); err != nil {
			return fmt.Errorf("set the times of the database: %w", err)
		}
	}
	return nil
}

// freeze copies the files as they would be if ductor were killed now.
func (d *storage) freeze() {
	if err := copyDir(d.dir, d.copy); err != nil {
		panic(fmt.Sprintf("copy the state of ductor: %v", err)) // t.Fatal must not be called in this goroutine
	}
}

// reboot changes the boot ID in the copied files, as if the machine had been restarted. ductor stores the boot ID in a
// file beside the database while the database is open.
func (d *storage) reboot() {
	mark := filepath.Join(d.copy, app.DatabaseFile+"-open")
	if _, err := os.Stat(mark); err != nil {
		return
	}
	if err := os.WriteFile(mark, []byte("an earlier start"), 0o600); err != nil {
		panic(fmt.Sprintf("mark the database: %v", err)) // t.Fatal must not be called in this goroutine
	}
}

// thaw restores the files as they were when ductor died.
func (d *storage) thaw() error {
	if err := d.release(); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("remove what a dead ductor wrote: %w", err)
	}
	for _, e := range entries {
		if isDatabase(e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(d.dir, e.Name())); err != nil {
			return fmt.Errorf("remove what a dead ductor wrote: %w", err)
		}
	}
	if err := copyDir(d.copy, d.dir); err != nil {
		return fmt.Errorf("put back the state of a dead ductor: %w", err)
	}
	if err := os.RemoveAll(d.copy); err != nil {
		return fmt.Errorf("remove a copy: %w", err)
	}
	return d.medium.Restart()
}

// copyDir copies a directory. It leaves out the database.
func copyDir(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case !e.Type().IsRegular() || filepath.Dir(path) == from && isDatabase(e.Name()):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}
