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

// action is the runner's next action for a run.
type action struct {
	end   string        // reason for ending the agent (a By constant); empty if the agent may continue
	sweep bool          // end the remaining processes of an agent that has exited
	at    time.Duration // time of the next check
	grace time.Duration // Limits.Grace
}

// next returns the action that is due now. Times are durations since the machine's boot.
func (l agentState) next(now time.Duration, limits Limits, owned bool) action {
	d := action{at: now + checkEvery, grace: limits.Grace}
	due := func(from, after time.Duration) bool {
		if after < 0 {
			return false
		}
		d.at = min(d.at, max(from+after, l.retryAt))
		return now >= from+after && now >= l.retryAt
	}
	switch {
	case l.phase == running && due(l.ageFrom, limits.MaxAge):
		d.end = ByMaxAge
	case l.phase == running && !owned && due(l.idleFrom, limits.OrphanAfter):
		d.end = ByOrphaned
	case l.phase == ended && !owned && due(max(l.idleFrom, l.exitedAt), limits.LeftoverAfter):
		d.sweep = true
	}
	return d
}

// nextAction returns the action that is due now. If this action ends the agent, nextAction also sets the time of the
// next attempt.
func (a *agent) nextAction(now time.Duration) action {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.state.next(now, a.Limits, a.owner != nil)
	if d.end != "" || d.sweep {
		d.at = now + retryEnd
		a.state.retryAt = d.at
	}
	return d
}

// snapshot returns a copy of the agent's state.
func (a *agent) snapshot() agentState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// enforceDeadlines ends agents at their deadlines. It returns when the runner should exit: if mayLeave returns true, or
// if a SIGTERM has arrived and all agents have ended.
func (s *server) enforceDeadlines(signals <-chan os.Signal) {
	var restedFrom time.Duration
	for {
		now := sinceBoot()
		next := now + checkEvery
		for _, a := range s.all() {
			d := a.nextAction(now)
			if d.end != "" || d.sweep {
				s.wg.Go(func() { _ = a.terminate(d.end, d.grace) })
			}
			next = min(next, d.at)
		}
		leave, at := s.mayLeave(now)
		if leave {
			return
		}
		next = min(next, s.releaseMemory(now, &restedFrom), s.prepare(now))
		select {
		case <-time.After(min(next, at) - now):
		case <-s.wakes:
		case sig := <-signals:
			if sig == syscall.SIGTERM {
				s.endAll()
				return
			}
		}
	}
}

// restAfter is the time between the end of the last agent and the release of memory.
const restAfter = 500 * time.Millisecond

// releaseMemory returns unused memory to the kernel, once in each period without agents. It returns the time of the
// next call. *released is the start of the last period in which releaseMemory returned memory to the kernel;
// releaseMemory updates it.
func (s *server) releaseMemory(now time.Duration, released *time.Duration) time.Duration {
	s.mu.Lock()
	idleFrom, busy := s.idleFrom, len(s.runs) > 0
	s.mu.Unlock()
	if busy || idleFrom == *released {
		return now + checkEvery
	}
	if at := idleFrom + restAfter; now < at {
		return at
	}
	*released = idleFrom
	_ = memory.Release() // on failure, the memory stays in use
	return now + checkEvery
}

// prepare creates the files of the next run if a client is connected. Without a client no run can start, and a user may
// be deleting the directory. prepare returns the time of the next call.
func (s *server) prepare(now time.Duration) (again time.Duration) {
	return s.prepared.prepareIfDue(s.dir, now, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.conns) > 0
	})
}

// desertedIdle is how long a runner continues without agents and clients. It is long enough for a client to connect to
// a runner that the client has just started.
const desertedIdle = time.Second

// mayLeave reports whether the runner may exit. If it may not, mayLeave returns the time of the next check. After
// mayLeave has returned true, no agent can start any more. The rules are:
//   - While an agent runs or starts, the runner must not exit.
//   - If its socket file is missing, the runner may exit at once.
//   - A runner that Hold started does not exit for any other reason.
//   - Any other runner may exit after s.idle without an agent, or already after desertedIdle if no client is connected
//     and no process of an agent is left.
func (s *server) mayLeave(now time.Duration) (leave bool, at time.Duration) {
	busy, left := false, false
	for _, a := range s.all() {
		phase := a.snapshot().phase
		busy, left = busy || phase < ended, left || phase < gone
	}
	_, err := os.Lstat(filepath.Join(s.dir, socketFile))
	s.mu.Lock()
	defer s.mu.Unlock()
	if busy {
		s.idleFrom = now
		return false, now + checkEvery
	}
	idle := s.idle
	if len(s.conns) == 0 && !left {
		idle = min(idle, desertedIdle)
	}
	if at = s.idleFrom + idle; (now < at || s.store != 0) && err == nil {
		if at <= now {
			at = now + checkEvery
		}
		return false, at
	}
	return s.starts.forbidIfIdle(now), now + checkEvery
}

// endAll ends every agent, because a signal is ending the runner. When endAll returns, the clients have been notified.
func (s *server) endAll() {
	s.starts.forbid() // if a run is just starting, the next runner ends it
	var ending sync.WaitGroup
	for _, a := range s.all() {
		ending.Go(func() { _ = a.terminate(ByTerminated, ownGrace) }) // on failure, the next runner finds the agent
	}
	ending.Wait()
}

// sweep ends orphaned processes. It does nothing while the runner has an agent, because an orphan may belong to this
// agent.
func (s *server) sweep() {
	for _, id := range s.orphans() {
		_ = kill(func() *proctree.Tree { return proctree.New(id, "") }) // the next sweep tries again
	}
}

// kill ends all processes of a tree at once.
func kill(tree func() *proctree.Tree) error {
	terminator := proctree.Terminator{Tree: tree}
	return terminator.End(0)
}

// orphans lists the runner's children that are not agents. It returns nothing while the runner has an agent.
func (s *server) orphans() (ids []proctree.ID) {
	all := s.all()
	s.reaping.Lock() // no agent can start until the unlock
	defer s.reaping.Unlock()
	if len(s.byPID) > 0 || slices.ContainsFunc(all, func(a *agent) bool { return a.snapshot().phase != gone }) {
		return nil
	}
	if s.store == 0 && errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil),
		unix.ECHILD) {
		return nil // no children; without this check, proctree.Children would read all processes of the machine
	}
	ids, err := proctree.Children(os.Getpid())
	if err == nil && s.store != 0 { // the first process of the container inherits the children of a dead runner
		var inherited []proctree.ID
		inherited, err = proctree.Children(os.Getppid())
		ids = append(ids, slices.DeleteFunc(inherited, func(id proctree.ID) bool { return id.PID == os.Getpid() })...)
	}
	if err != nil {
		return nil
	}
	return ids
}

// children tracks the child processes of the runner.
type children struct {
	reaping sync.Mutex     // held while a child is reaped, started or signalled
	byPID   map[int]*agent // guarded by reaping
}

// reap collects the exits of children until the runner leaves.
func (s *server) reap(signals <-chan os.Signal) {
	for {
		for s.reapOne() {
		}
		select {
		case <-signals:
		case <-s.ctx.Done():
			return
		}
	}
}

// reapChild reaps a child that has exited. It returns a PID of 0 or less if no child has exited.
func reapChild() (pid int, status syscall.WaitStatus) {
	err := error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		pid, err = syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	}
	return pid, status
}

// reapOne collects the exit of one child. It returns false if no child has exited.
func (c *children) reapOne() bool {
	c.reaping.Lock()
	defer c.reaping.Unlock()
	pid, w := reapChild()
	if pid <= 0 {
		return false
	}
	if a := c.byPID[pid]; a != nil {
		delete(c.byPID, pid)
		e := Exit{Known: true, Code: w.ExitStatus()}
		if w.Signaled() {
			e = Exit{Known: true, Code: -int(w.Signal()), Signal: true}
		}
		a.recordExit(e)
	}
	return true
}
