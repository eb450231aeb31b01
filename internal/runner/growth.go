package runner

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"ductor/internal/runner/inotify"
	"ductor/internal/runner/journal"
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

// recheck makes the method check include the journal of a again, unless a was removed.
func (g *growthWatch) recheck(a *agent) {
	g.mu.Lock()
	if _, known := g.growing[a]; known {
		g.growing[a] = true
	}
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
		return a.life.currentStatus().Ended
	}
	g.mu.Lock()
	if _, known := g.growing[a]; known {
		g.growing[a] = false
	}
	g.mu.Unlock()
	for _, file := range []string{outFile, errFile} {
		if g.watcher.Arm(filepath.Join(g.dir, a.record.ID, file), a, func() { g.recheck(a) }) == nil {
			continue
		}
		// The user has too many inotify watches, so check the journal periodically.
		if a.life.currentStatus().Ended {
			return true
		}
		g.recheck(a)
		return false
	}
	if a.enforceJournal() == 0 {
		return true
	}
	g.recheck(a)
	return false
}

// checkJournal checks how much output the agent has written. If the journal has recorded the time of new output,
// checkJournal writes this time to the run's log.
func (a *agent) checkJournal() journal.Growth {
	g := a.out.Check()
	if g.Time != nil {
		a.log.append(lineTime, g.Time.Offset, g.Time.At)
	}
	return g
}

// enforceJournal checks an agent's journal and enforces its size limit. It returns the time until the next check, or 0
// if the journal is not growing.
func (a *agent) enforceJournal() time.Duration {
	g := a.checkJournal()
	if g.Bytes == 0 && !g.Scarce {
		return 0
	}
	full := a.out.EnforceLimit(a.life.journalLimit())
	a.logFreed()
	if full {
		a.s.life.Go(func() { _ = a.terminate(ByFullDisk, a.life.grace()) })
		return scarceEvery
	}
	a.updateFlow()
	switch {
	case g.Bytes > fastGrowth:
		return fastGrowthEvery
	case g.Bytes == 0:
		if a.life.currentStatus().Ended {
			return 0
		}
		return scarceEvery
	}
	return growthEvery
}
