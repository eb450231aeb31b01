package runner

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"ductor/internal/runner/inotify"
)

const (
	growthEvery     = 100 * time.Millisecond // interval of checks while a journal grows
	fastGrowthEvery = 10 * time.Millisecond  // interval if a journal grew by more than fastGrowth since the last check
	fastGrowth      = 8 << 20
	scarceEvery     = time.Second // interval while the disk is full
)

// growthWatch limits the size of journals. It checks a journal periodically only while the journal grows. Safe for
// concurrent use.
type growthWatch struct {
	watcher *inotify.Watcher // if nil, all journals are checked periodically
	dir     string
	wakes   chan struct{}

	mu      sync.Mutex
	growing map[*agent]bool // true: check periodically; false: wait until the watcher reports a write
}

func newGrowthWatch(dir string) *growthWatch {
	w, err := inotify.New()
	if err != nil { // the user has too many inotify instances
		w = nil
	}
	return &growthWatch{watcher: w, dir: dir, wakes: make(chan struct{}, 1), growing: map[*agent]bool{}}
}

func (g *growthWatch) add(a *agent) {
	g.mu.Lock()
	g.growing[a] = true
	g.mu.Unlock()
	signalOnce(g.wakes)
}

func (g *growthWatch) remove(a *agent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.growing, a)
}

// serve checks the journals until ctx is done.
func (g *growthWatch) serve(ctx context.Context) {
	var served sync.WaitGroup
	defer served.Wait()
	if g.watcher != nil {
		served.Go(g.watcher.Serve)
		defer g.watcher.Close()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wakes:
		}
		for pause := growthEvery; pause > 0; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			pause = g.check()
		}
	}
}

// check checks every growing journal. It returns the time until the next check, or 0 if all journals have stopped
// growing.
func (g *growthWatch) check() (again time.Duration) {
	g.mu.Lock()
	var growing []*agent
	for a, grows := range g.growing {
		if grows {
			growing = append(growing, a)
		}
	}
	g.mu.Unlock()
	for _, a := range growing {
		next := a.enforceJournal()
		if next == 0 && g.arm(a) {
			continue
		}
		if next == 0 {
			next = growthEvery
		}
		if again == 0 || next < again {
			again = next
		}
	}
	return again
}

// arm makes the watcher wait for the next write to a journal that has stopped growing. It returns false if the journal
// is growing again.
func (g *growthWatch) arm(a *agent) bool {
	if g.watcher == nil {
		return a.snapshot().status.Ended
	}
	g.mu.Lock()
	if _, known := g.growing[a]; known {
		g.growing[a] = false
	}
	g.mu.Unlock()
	for _, file := range []string{outFile, errFile} {
		if g.watcher.Arm(filepath.Join(g.dir, a.ID, file), a, func() { g.add(a) }) != nil {
			return a.snapshot().status.Ended
		}
	}
	if a.enforceJournal() == 0 {
		return true
	}
	g.add(a)
	return false
}

// growth is the result of a check of a journal.
type growth struct {
	grew   int64 // number of bytes written since the last check
	scarce bool  // the disk is full
	time   bool  // journal.times has a new entry, which consists of offset and at
	offset int64
	at     int64
}

// check detects output since the last check. It takes the time of the output from the file's modification time.
func (j *journal) check() (g growth) {
	out, outErr := j.out.Stat()
	stderr, errErr := j.err.Stat()
	j.mu.Lock()
	defer j.mu.Unlock()
	g.scarce = j.room == scarce
	if outErr == nil && out.Size() != j.size {
		g.grew = max(out.Size()-j.size, 1)
		at := out.ModTime()
		if n := len(j.times); out.Size() > j.size && (n == 0 || at.Sub(time.UnixMicro(j.times[n-1])) >= j.every) {
			g.time, g.offset, g.at = true, j.size, at.UnixMicro()
			j.times = append(j.times, g.offset, g.at)
			j.thin()
		}
		j.size = out.Size()
		j.allocated = max(j.allocated, j.size)
	}
	if errErr == nil && stderr.Size() != j.errSize {
		g.grew += max(stderr.Size()-j.errSize, 1)
		j.errSize = stderr.Size()
	}
	return g
}

// thin limits the length of j.times. If j.times is too long, thin removes every second entry and doubles the minimum
// interval between new entries.
func (j *journal) thin() {
	if len(j.times) < 2*maxTimes {
		return
	}
	kept := j.times[:0]
	for i := 0; i+1 < len(j.times); i += 4 {
		kept = append(kept, j.times[i], j.times[i+1])
	}
	j.times, j.every = kept, 2*j.every
}

// checkJournal checks the journal, and writes a new time to the log.
func (a *agent) checkJournal() growth {
	g := a.out.check()
	if g.time {
		a.appendLog(lineTime, g.offset, g.at)
	}
	return g
}

// enforceJournal checks an agent's journal and enforces its size limit. It returns the time until the next check, or 0
// if the journal is not growing.
func (a *agent) enforceJournal() time.Duration {
	g := a.checkJournal()
	if g.grew == 0 && !g.scarce {
		return 0
	}
	a.mu.Lock()
	owned, most := a.owner != nil, a.Limits.MaxJournal
	a.mu.Unlock()
	full := a.out.enforceLimit(most, owned)
	a.logFreed()
	if full {
		a.s.wg.Go(func() { _ = a.terminate(ByFullDisk, ownGrace) })
		return scarceEvery
	}
	a.updateFlow()
	switch {
	case g.grew > fastGrowth:
		return fastGrowthEvery
	case g.grew == 0:
		if a.snapshot().status.Ended {
			return 0
		}
		return scarceEvery
	}
	return growthEvery
}
