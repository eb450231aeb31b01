package runner

import (
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/memory"
	"ductor/internal/proctree"
)

// enforceDeadlines ends agents at their deadlines. It returns when the runner should exit: if mayLeave returns true, or
// if a SIGTERM has arrived and all agents have ended.
func (s *server) enforceDeadlines(signals <-chan os.Signal) {
	var restedFrom time.Duration
	for {
		now := sinceBoot()
		next := now + checkEvery
		for _, a := range s.runs.all() {
			d := a.life.nextAction(now)
			if d.end != "" || d.sweep {
				s.life.Go(func() { _ = a.terminate(d.end, d.grace) })
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

// releaseMemory returns unused memory to the kernel once after the last agent has ended, until another agent starts.
// *released is the time at which the last agent had ended when releaseMemory last released memory. releaseMemory
// updates *released. It returns the time at which the caller must call it again.
func (s *server) releaseMemory(now time.Duration, released *time.Duration) time.Duration {
	idleFrom, empty := s.runs.idleSince()
	if !empty || idleFrom == *released {
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
	return s.prepared.prepareIfDue(s.dir.path, now, func() bool { return s.clients.count() > 0 })
}

// desertedIdle is how long a runner continues without agents and clients. It is long enough for a client to connect to
// a runner that the client has just started.
const desertedIdle = time.Second

// mayLeave reports whether the runner may exit. If it may not, mayLeave returns the time of the next check. After
// mayLeave has returned true, no agent can start any more. The rules are:
//   - While an agent runs or starts, the runner must not exit.
//   - If its socket file is missing, the runner may exit at once.
//   - A runner that Hold started does not exit for any other reason.
//   - Any other runner may exit if no agent has been running for the duration s.idle. This
//     duration is only desertedIdle if no client is connected and no process of an agent is left.
func (s *server) mayLeave(now time.Duration) (leave bool, at time.Duration) {
	busy, left := false, false
	for _, a := range s.runs.all() {
		phase := a.life.currentPhase()
		busy, left = busy || phase < ended, left || phase < gone
	}
	if busy {
		s.runs.noteBusy(now)
		return false, now + checkEvery
	}
	idle := s.idle
	if s.clients.count() == 0 && !left {
		idle = min(idle, desertedIdle)
	}
	from, _ := s.runs.idleSince()
	if at = from + idle; (now < at || s.holder.exists()) && s.dir.hasSocket() {
		if at <= now {
			at = now + checkEvery
		}
		return false, at
	}
	return s.runs.forbidIfIdle(now), now + checkEvery
}

// endAll ends every agent, because a signal is ending the runner. When endAll returns, the clients have been notified.
func (s *server) endAll() {
	// No new start may begin. A start that is already in progress can still create a run, which the next runner then
	// ends.
	s.runs.forbid()
	var ending sync.WaitGroup
	for _, a := range s.runs.all() {
		// If this fails, the next runner ends the agent.
		ending.Go(func() { _ = a.terminate(ByTerminated, a.life.grace()) })
	}
	ending.Wait()
}

// sweep ends orphaned processes. It does nothing while the runner has an agent, because an orphan may belong to this
// agent.
func (s *server) sweep() {
	for _, id := range s.orphans() {
		_ = kill(func() *proctree.Tree { return proctree.New(id, "") }) // on failure, the next sweep tries again
	}
}

// kill ends all processes of a tree at once.
func kill(tree func() *proctree.Tree) error {
	terminator := proctree.Terminator{Tree: tree}
	return terminator.End(0)
}

// orphans lists the runner's children that are not agents. It returns nothing while the runner has an agent.
func (s *server) orphans() (ids []proctree.ID) {
	all := s.runs.all()
	s.children.reaping.Lock() // no agent can start until the unlock
	defer s.children.reaping.Unlock()
	isLeft := func(a *agent) bool { return a.life.currentPhase() != gone }
	if len(s.children.byPID) > 0 || slices.ContainsFunc(all, isLeft) {
		return nil
	}
	if !s.holder.exists() && errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil),
		unix.ECHILD) {
		return nil // no children; without this check, proctree.Children would read all processes of the machine
	}
	ids, err := proctree.Children(os.Getpid())
	// If Hold started this runner, Hold is the first process of the container. When an earlier runner died, its orphans
	// became children of Hold.
	if err == nil && s.holder.exists() {
		var inherited []proctree.ID
		inherited, err = proctree.Children(os.Getppid())
		ids = append(ids, slices.DeleteFunc(inherited, func(id proctree.ID) bool { return id.PID == os.Getpid() })...)
	}
	if err != nil {
		return nil
	}
	return ids
}
