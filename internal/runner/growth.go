package runner

import (
	"context"
	"path/filepath"
	"sync"
	"time"
)

const (
	growthEvery = 100 * time.Millisecond // between two looks at journals that grow
	growthFast  = 10 * time.Millisecond  // if one grows by more than growthMuch between two
	growthMuch  = 8 << 20
	scarceEvery = time.Second // while the disk is full
)

// growthWatch looks after journals while they grow, and sleeps while none does. Safe for concurrent use.
type growthWatch struct {
	watcher *watcher // nil: then all journals are looked at all the time
	dir     string
	wakes   chan struct{}

	mu      sync.Mutex
	growing map[*agent]bool // true: it grows; false: it is armed
}

func newGrowthWatch(dir string) *growthWatch {
	w, err := newWatcher()
	if err != nil { // this user has no more instances
		w = nil
	}
	return &growthWatch{watcher: w, dir: dir, wakes: make(chan struct{}, 1), growing: map[*agent]bool{}}
}

// add looks after a journal from now on.
func (g *growthWatch) add(a *agent) { g.set(a) }

// set has a journal looked at.
func (g *growthWatch) set(a *agent) {
	g.mu.Lock()
	g.growing[a] = true
	g.mu.Unlock()
	select {
	case g.wakes <- struct{}{}:
	default:
	}
}

func (g *growthWatch) drop(a *agent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.growing, a)
}

// serve looks at journals that grow until ctx is done.
func (g *growthWatch) serve(ctx context.Context) {
	var served sync.WaitGroup
	defer served.Wait()
	if g.watcher != nil {
		served.Go(g.watcher.serve)
		defer g.watcher.close()
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
			pause = g.look()
		}
	}
}

// look looks at every journal that grows, and says when to look again; never if none grows any more.
func (g *growthWatch) look() (again time.Duration) {
	g.mu.Lock()
	var growing []*agent
	for a, grows := range g.growing {
		if grows {
			growing = append(growing, a)
		}
	}
	g.mu.Unlock()
	for _, a := range growing {
		next := a.grow()
		if next == 0 && g.rest(a) {
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

// rest arms the watch of a journal that grows no more. It says whether it is still at rest then.
func (g *growthWatch) rest(a *agent) bool {
	if g.watcher == nil {
		return a.status().Ended
	}
	g.mu.Lock()
	if _, known := g.growing[a]; known {
		g.growing[a] = false
	}
	g.mu.Unlock()
	for _, file := range []string{outFile, errFile} {
		if g.watcher.arm(filepath.Join(g.dir, a.ID, file), func() { g.set(a) }) != nil {
			return a.status().Ended
		}
	}
	if a.grow() == 0 {
		return true
	}
	g.set(a)
	return false
}

// look looks at the journal, and notes in the log what that found.
func (a *agent) look() growth {
	g := a.out.look()
	if g.time {
		a.note(lineTime, g.offset, g.at)
	}
	return g
}

// grow looks at the journal of an agent, keeps it in its bounds, and says when to look again; 0 if it does not grow.
func (a *agent) grow() time.Duration {
	g := a.look()
	if g.grew == 0 && !a.out.isScarce() {
		return 0
	}
	a.mu.Lock()
	owned, most, grace := a.owner != nil, a.Limits.MaxJournal, a.Limits.Grace
	a.mu.Unlock()
	full := a.out.keep(most, owned)
	a.noteFreed()
	if full {
		a.s.wg.Go(func() { _ = a.end(ByFullDisk, grace) })
		return scarceEvery
	}
	a.pause()
	switch {
	case g.grew > growthMuch:
		return growthFast
	case g.grew == 0:
		if a.status().Ended {
			return 0
		}
		return scarceEvery
	}
	return growthEvery
}
