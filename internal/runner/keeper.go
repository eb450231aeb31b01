package runner

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/memory"
	"ductor/internal/proctree"
)

// duty is what the runner has to do next for a run.
type duty struct {
	end   string // end the agent, on this behalf
	sweep bool   // end what the agent left
	at    time.Duration
}

// facts is what decides over the next duty. Times are since boot.
type facts struct {
	life
	now    time.Duration
	limits Limits
	owned  bool
}

// next says what is due now, or else when to look again.
func (f facts) next() duty {
	d := duty{at: f.now + lookEvery}
	due := func(from, after time.Duration) bool {
		if after < 0 {
			return false
		}
		d.at = min(d.at, max(from+after, f.retryAt))
		return f.now >= from+after && f.now >= f.retryAt
	}
	switch {
	case f.phase == running && due(f.ageFrom, f.limits.MaxAge):
		d.end = ByMaxAge
	case f.phase == running && !f.owned && due(f.idleFrom, f.limits.OrphanAfter):
		d.end = ByOrphaned
	case f.phase == ended && !f.owned && due(max(f.idleFrom, f.exitedAt), f.limits.LeftoverAfter):
		d.sweep = true
	}
	return d
}

func (a *agent) facts() facts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return facts{life: a.life, now: sinceBoot(), limits: a.Limits, owned: a.owner != nil}
}

// keep does what time or the absence of a client demands, until there has been no agent for long or a signal ends the
// runner.
func (s *server) keep(signals <-chan os.Signal) {
	var restedFrom time.Duration
	for {
		now := sinceBoot()
		next := now + lookEvery
		for _, a := range s.all() {
			d := a.facts().next()
			if d.end != "" || d.sweep {
				a.mu.Lock()
				a.life.retryAt = now + retryEnd
				grace := a.Limits.Grace
				a.mu.Unlock()
				s.wg.Go(func() { _ = a.end(d.end, grace) })
				d.at = now + retryEnd
			}
			next = min(next, d.at)
		}
		leave, at := s.mayLeave(now)
		if leave {
			return
		}
		next = min(next, s.rest(now, &restedFrom), s.prepare(now))
		timer := time.NewTimer(min(next, at) - now)
		select {
		case <-timer.C:
		case <-s.wakes:
		case sig := <-signals:
			if sig == syscall.SIGTERM {
				s.endAll()
				return
			}
		}
		timer.Stop()
	}
}

// restAfter is how long there must be no agent until the runner gives memory back.
const restAfter = 500 * time.Millisecond

// rest gives memory back once in every time without an agent, and says when to ask again. The last such time began at
// from.
func (s *server) rest(now time.Duration, from *time.Duration) time.Duration {
	s.mu.Lock()
	idleFrom, busy := s.idleFrom, len(s.runs)+len(s.starting) > 0
	s.mu.Unlock()
	if busy || idleFrom == *from {
		return now + lookEvery
	}
	if at := idleFrom + restAfter; now < at {
		return at
	}
	*from = idleFrom
	_ = memory.Release() // what is kept does no harm
	return now + lookEvery
}

// prepare has the files of the next run made while a client is there, and says when to ask again. Without one nothing
// starts, and who removes the directory of the runs must not find new files in it.
func (s *server) prepare(now time.Duration) (again time.Duration) {
	return s.next.tend(s.dir, now, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.conns) > 0
	})
}

// desertedIdle is how long a runner stays without an agent once its last client has left: a client that starts it takes
// less time to connect.
const desertedIdle = time.Second

// mayLeave reports whether the runner may end: nothing has run for long, or no client uses it and nothing is left of
// its agents. Nothing starts then. Otherwise it returns when to ask again.
func (s *server) mayLeave(now time.Duration) (leave bool, at time.Duration) {
	busy, left := false, false
	for _, a := range s.all() {
		phase := a.facts().phase
		busy, left = busy || phase < ended, left || phase < gone
	}
	_, err := os.Lstat(filepath.Join(s.dir, socketFile))
	s.mu.Lock()
	defer s.mu.Unlock()
	if busy || len(s.starting) > 0 {
		s.idleFrom = now
		return false, now + lookEvery
	}
	idle := s.idle
	if len(s.conns) == 0 && !left {
		idle = min(idle, desertedIdle)
	}
	if at = s.idleFrom + idle; (now < at || s.store != 0) && err == nil {
		if at <= now {
			at = now + lookEvery
		}
		return false, at
	}
	s.starting = nil
	return true, at
}

// endAll ends every agent, because the runner was told to end, and tells the clients before it returns.
func (s *server) endAll() {
	s.mu.Lock()
	s.starting = nil // what starts just now is ended by its mark at the next start
	s.mu.Unlock()
	var ending sync.WaitGroup
	for _, a := range s.all() {
		ending.Go(func() { _ = a.end(ByTerminated, a.facts().limits.Grace) }) // else the next runner finds it
	}
	ending.Wait()
}

// sweep ends what descends from agents and cannot be told whose it is, once no agent is left that it may be of.
func (s *server) sweep() {
	for _, id := range s.orphans() {
		terminator := proctree.Terminator{Tree: func() *proctree.Tree { return proctree.New(id, "") }}
		_ = terminator.End(0) // the next sweep tries again
	}
}

// orphans lists our children that are no agents, when no agent is left.
func (s *server) orphans() (ids []proctree.ID) {
	all := s.all()
	s.reaping.Lock() // so that no agent starts
	defer s.reaping.Unlock()
	if len(s.byPID) > 0 || slices.ContainsFunc(all, func(a *agent) bool { return a.facts().phase != gone }) {
		return nil
	}
	if s.store == 0 && errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil),
		unix.ECHILD) {
		return nil // to look at every process takes longer than the end of an agent
	}
	ids, err := proctree.Children(os.Getpid())
	if err == nil && s.store != 0 { // what the runner before us had is the first process's now
		var inherited []proctree.ID
		inherited, err = proctree.Children(os.Getppid())
		ids = append(ids, slices.DeleteFunc(inherited, func(id proctree.ID) bool { return id.PID == os.Getpid() })...)
	}
	if err != nil {
		return nil
	}
	return ids
}

// reap takes the exit of every child, until the runner leaves.
func (s *server) reap(signals <-chan os.Signal) {
	for {
		for s.reapOne() {
		}
		select {
		case <-signals:
		case <-s.life.Done():
			return
		}
	}
}

func (s *server) reapOne() bool {
	s.reaping.Lock()
	defer s.reaping.Unlock()
	var w syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &w, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.EINTR) {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	if a := s.byPID[pid]; a != nil {
		delete(s.byPID, pid)
		e := Exit{Known: true, Code: w.ExitStatus()}
		if w.Signaled() {
			e = Exit{Known: true, Code: -int(w.Signal()), Signal: true}
		}
		a.exit(e)
	}
	return true
}
