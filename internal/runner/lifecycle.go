package runner

import (
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// phase is the stage of a run.
type phase int

const (
	running phase = iota
	exited        // the program has exited; its descendants may still write output
	ended         // the output is complete
	gone          // no process of the agent is left
)

// flow records whether an agent is running or paused. The runner pauses an agent with SIGSTOP if the agent writes
// faster than its client reads.
type flow int

const (
	flowing       flow = iota
	paused             // stopped until the client has caught up
	perhapsPaused      // the previous runner died, and its log does not contain whether the agent was paused
)

const (
	// The runner pauses an agent when more than pauseLag bytes of its output are unread, and resumes it below
	// resumeLag.
	pauseLag  = 64 << 20
	resumeLag = 32 << 20
	// When a runner adopts a paused agent from the previous runner, it waits at most reattachWithin for the agent's
	// client before it resumes the agent. An agent that runs without its client could lose output, because its journal
	// then deletes output beyond its size limit.
	reattachWithin = 10 * time.Second
)

// lifecycle is the progress of a run, from the start of its program until no process is left. It contains the client
// that owns the run, the deadlines, and whether the agent is paused. It logs each change that the next runner must
// know. Safe for concurrent use.
type lifecycle struct {
	log  runLog
	dead chan struct{} // closed when the program has exited
	over chan struct{} // closed after the output is complete and the clients were notified

	mu        sync.Mutex // guards the fields below; held while the agent is paused or resumed
	phase     phase
	status    Status
	by        string // why the runner is ending the agent (a By constant); "" while the agent may continue
	owner     *conn  // the client that owns the run; nil for none
	flow      flow
	deadlines deadlines
}

func newLifecycle(log runLog, limits Limits, owner *conn) *lifecycle {
	now := sinceBoot()
	return &lifecycle{
		log: log, dead: make(chan struct{}), over: make(chan struct{}), owner: owner,
		deadlines: deadlines{limits: limits, ageFrom: now, idleFrom: now},
	}
}

// restore continues the lifecycle of a run from the previous runner's log. age is how long ago the run was started.
// alive is true if the run's program is running.
func (l *lifecycle) restore(h history, age time.Duration, alive bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by = h.by
	l.deadlines.ageFrom = sinceBoot() - age
	if h.limits != nil {
		l.deadlines.limits, l.deadlines.ageFrom = *h.limits, h.ageFrom
	}
	switch {
	case h.status != nil:
		l.status, l.phase = *h.status, ended
		close(l.dead)
		close(l.over)
	case alive:
		l.flow = perhapsPaused
	}
}

// exit records that the program has exited. It is called once. It clears e.OOM if the runner itself ended the agent.
func (l *lifecycle) exit(e Exit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.By = l.by
	e.OOM = e.OOM && e.By == ""
	l.phase, l.deadlines.exitedAt = exited, sinceBoot()
	l.status = Status{Exit: e, Exited: time.Now()}
	close(l.dead)
}

// endOutput records that the output is complete, and logs the status of the run. The caller must then notify the
// clients, and afterwards close l.over.
func (l *lifecycle) endOutput(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = ended
	l.status.Ended, l.status.OutputEnd = true, size
	l.log.append(lineStatus, l.status)
}

// beginEnd records why the runner is ending the agent. Only the first reason counts.
func (l *lifecycle) beginEnd(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase == running && l.by == "" {
		l.by = reason
		l.log.append(lineBy, reason)
	}
}

// finish records that no process of the run is left.
func (l *lifecycle) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = gone
}

func (l *lifecycle) currentPhase() phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase
}

// currentStatus returns how the run ended. It is empty while the program is running.
func (l *lifecycle) currentStatus() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// outputEnd returns the size of the output. The size is valid after l.over is closed.
func (l *lifecycle) outputEnd() int64 { return l.currentStatus().OutputEnd }

// setOwner changes the client that owns the run. If newOwner is nil, no client owns the run any more. If old is neither
// nil nor the current owner, setOwner does nothing and returns false.
func (l *lifecycle) setOwner(old, newOwner *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old != nil && l.owner != old {
		return false
	}
	l.owner, l.deadlines.idleFrom = newOwner, sinceBoot()
	return true
}

func (l *lifecycle) isOwnedBy(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owner == c
}

func (l *lifecycle) setLimits(limits Limits) {
	from := sinceBoot()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadlines.limits, l.deadlines.ageFrom = limits, from
	l.log.append(lineAge, int64(from), limits)
}

func (l *lifecycle) grace() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadlines.limits.Grace
}

// journalLimit returns Limits.MaxJournal, and whether a client owns the run.
func (l *lifecycle) journalLimit() (limit int64, owned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadlines.limits.MaxJournal, l.owner != nil
}

// fillInfo sets the fields of info that the lifecycle knows.
func (l *lifecycle) fillInfo(info *Info) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info.Limits, info.Alive, info.Attached = l.deadlines.limits, l.phase == running, l.owner != nil
	if l.owner != nil {
		info.AttachedBy = l.owner.pid
	}
	if !info.Alive {
		status := l.status
		info.Status = &status
	}
}

// updateFlow decides whether the agent is paused, and calls signal if this changes. lag is the number of bytes that the
// owner has not read.
func (l *lifecycle) updateFlow(lag int64, signal func(syscall.Signal)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.nextFlow(lag)
	if next == l.flow {
		return
	}
	l.flow = next
	if next == paused {
		signal(unix.SIGSTOP)
	} else {
		signal(unix.SIGCONT)
	}
}

// nextFlow pauses an agent if its owner has much output left to read, and resumes the agent when the owner has caught
// up. It does not pause an agent without an owner, because then the journal drops old output beyond its size limit.
func (l *lifecycle) nextFlow(lag int64) flow {
	owned := l.owner != nil
	switch {
	case l.phase != running || l.by != "":
	case owned && lag > pauseLag:
		return paused
	case !owned && l.flow == perhapsPaused && sinceBoot()-l.deadlines.idleFrom < reattachWithin:
	case !owned || lag < resumeLag || l.flow == perhapsPaused:
		return flowing
	}
	return l.flow
}

// nextAction returns the action that is due now. If this action ends the agent, nextAction also sets the time of the
// next attempt.
func (l *lifecycle) nextAction(now time.Duration) action {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.deadlines.next(now, l.phase, l.owner != nil)
	if d.end != "" || d.sweep {
		d.at = now + retryEnd
		l.deadlines.retryAt = d.at
	}
	return d
}

// deadlines decide when the runner ends an agent, or the processes that remain after the agent's exit. All times are
// durations since the machine's boot.
type deadlines struct {
	limits   Limits
	ageFrom  time.Duration
	idleFrom time.Duration // when the last client that owned the run left
	exitedAt time.Duration
	retryAt  time.Duration // when to try again to end the agent, after a failed attempt
}

type action struct {
	end   string        // reason for ending the agent (a By constant); empty if the agent may continue
	sweep bool          // end the remaining processes of an agent that has exited
	at    time.Duration // time of the next check
	grace time.Duration // Limits.Grace
}

func (d deadlines) next(now time.Duration, p phase, owned bool) action {
	a := action{at: now + checkEvery, grace: d.limits.Grace}
	due := func(from, after time.Duration) bool {
		if after < 0 {
			return false
		}
		a.at = min(a.at, max(from+after, d.retryAt))
		return now >= from+after && now >= d.retryAt
	}
	switch {
	case p == running && due(d.ageFrom, d.limits.MaxAge):
		a.end = ByMaxAge
	case p == running && !owned && due(d.idleFrom, d.limits.OrphanAfter):
		a.end = ByOrphaned
	case p == ended && !owned && due(max(d.idleFrom, d.exitedAt), d.limits.LeftoverAfter):
		a.sweep = true
	}
	return a
}
