package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/proctree"
	"ductor/internal/runner/fork"
)

const (
	drainIdle     = 500 * time.Millisecond // the output of an exited agent is complete after this long without output
	drainMax      = 3 * time.Second        // upper limit of the wait for output after the agent's exit
	drainInterval = 5 * time.Millisecond
	exitWait      = 5 * time.Second // maximum time between killing an agent and recording its exit
	retryEnd      = 5 * time.Second // pause before the runner tries again to end processes
	checkEvery    = 30 * time.Second
	pollExitEvery = 100 * time.Millisecond
)

// phase is the stage of a run.
type phase int

const (
	running phase = iota
	exited        // the program has exited; its descendants may still write output
	ended         // the output is complete
	gone          // no process of the agent is left
)

// agent is the runner's representation of a run: the agent program with its process tree, files and limits.
type agent struct {
	record
	s    *server
	root proctree.ID
	in   *input
	runFiles
	terminator proctree.Terminator
	dead       chan struct{} // closed when the program has exited
	over       chan struct{} // closed when the output is complete

	mu    sync.Mutex
	state agentState
	owner *conn
}

// agentState is the mutable state of an agent. All times are durations since the machine's boot.
type agentState struct {
	phase    phase
	status   Status
	by       string // why the runner is ending the agent (a By constant); "" while the agent may continue
	flow     flow
	ageFrom  time.Duration
	idleFrom time.Duration // when the last client that owned the run left
	exitedAt time.Duration
	retryAt  time.Duration // when to try again to end the agent, after a failed attempt
	freed    int64         // the log already records that output before this offset is freed
}

// flow records whether an agent is running or paused. The runner pauses an agent with SIGSTOP if the agent writes
// faster than its client reads.
type flow int

const (
	flowing       flow = iota
	paused             // stopped until the client has caught up
	perhapsPaused      // the previous runner died, and its log does not contain whether the agent was paused
)

// reattachWithin is how long a new runner waits for a client to attach to an agent of the previous runner. Until then,
// the new runner does not resume a paused agent: without a client, the journal drops output beyond its size limit.
const reattachWithin = 10 * time.Second

func (s *server) newAgent(rec record) *agent {
	now := sinceBoot()
	a := &agent{record: rec, s: s, in: &input{}, dead: make(chan struct{}), over: make(chan struct{}),
		state: agentState{ageFrom: now, idleFrom: now}}
	a.terminator.Tree = func() *proctree.Tree { return proctree.New(a.root, Mark(a.ID)).Within(a.group(s.dir)) }
	return a
}

// start starts an agent. The error matches fs.ErrExist if the ID is in use.
func (s *server) start(spec Spec, owner *conn) (a *agent, err error) {
	if spec, err = spec.resolve(); err != nil {
		return nil, err
	}
	files, err := s.prepared.claim(s.dir, spec.ID)
	if err != nil {
		return nil, err
	}
	group := makeGroup(s.group, s.dir, spec.ID)
	defer func() {
		if err != nil {
			err = errors.Join(err, group.Remove(), os.RemoveAll(filepath.Join(s.dir, spec.ID)))
		}
	}()
	a = s.newAgent(record{
		Version: Version, ID: spec.ID, Boot: proctree.BootID(), Started: time.Now(), Command: spec.shown(),
		Dir:    spec.Dir,
		Labels: spec.Labels, Limits: spec.Limits.withDefaults(), Group: group.Path, OOMKills: proctree.OOMKills(),
	})
	a.owner, a.runFiles = owner, files
	agents, in, inode, err := newInput()
	if err != nil {
		a.close()
		return nil, err
	}
	defer unix.Close(agents[0])
	defer unix.Close(agents[1])
	a.in, a.Socket = in, inode
	if err = a.write(s.dir); err == nil {
		err = s.store.Put(a.ID, in.end)
	}
	if err == nil {
		err = a.fork(spec, group, agents)
	}
	if err != nil {
		s.store.Delete(a.ID)
		a.close()
		return nil, err
	}
	a.appendLog(lineAgent, int64(a.root.PID), fmt.Sprint(a.root.Start))
	s.add(a)
	return a, nil
}

// fork starts the program and registers it as a child, so that reap collects its exit.
func (a *agent) fork(spec Spec, group proctree.Group, agents [2]int) error {
	out, stderr := int(a.out.out.Fd()), int(a.out.err.Fd())
	a.s.reaping.Lock()
	defer a.s.reaping.Unlock()
	program := fork.Program{Path: spec.Path, Dir: spec.Dir, Args: spec.Args, Env: spec.environment()}
	pid, err := fork.Start(program, group, [4]int{agents[0], out, stderr, agents[1]}, a.s.agents)
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Path, err)
	}
	a.root, _ = proctree.LookUp(pid) // cannot fail, because the process is not reaped yet
	a.s.byPID[pid] = a
	return nil
}

func (a *agent) close() {
	a.runFiles.close()
	a.in.close()
}

// recordExit records how the program ended. It is called once.
func (a *agent) recordExit(e Exit) {
	a.mu.Lock()
	a.state.phase, a.state.exitedAt = exited, sinceBoot()
	e.By = a.state.by
	killed := !e.Known || e.Signal && e.Code == -int(unix.SIGKILL)
	if killed && e.By == "" && a.OOMKills != nil {
		kills := proctree.OOMKills()
		e.OOM = kills != nil && *kills > *a.OOMKills
	}
	a.state.status = Status{Exit: e, Exited: time.Now()}
	a.mu.Unlock()
	a.in.close()
	a.s.store.Delete(a.ID)
	close(a.dead)
	a.s.wg.Go(a.awaitOutputEnd)
}

// awaitOutputEnd waits for the end of the output. It returns at once if no other process of the run is left. Otherwise
// it returns when no output has arrived for drainIdle, or after drainMax.
func (a *agent) awaitOutputEnd() {
	began := time.Now()
	grew, size := began, a.out.end()
	told := false
	for a.terminator.Tree().Held() {
		if !told {
			a.s.broadcast(a)
			told = true
		}
		time.Sleep(drainInterval)
		now := time.Now()
		if s := a.out.end(); s != size {
			grew, size = now, s
		}
		if now.Sub(grew) >= drainIdle || now.Sub(began) >= drainMax {
			break
		}
	}
	a.mu.Lock()
	a.state.phase = ended
	a.state.status.Ended, a.state.status.OutputEnd = true, a.out.end()
	status := a.state.status
	a.mu.Unlock()
	a.appendLog(lineStatus, status)
	a.s.broadcast(a)
	close(a.over)
	a.s.wake()
}

// terminate ends the agent and all its descendants, for the given reason (a By constant). grace may be ownGrace.
func (a *agent) terminate(reason string, grace time.Duration) error {
	a.mu.Lock()
	if grace < 0 {
		grace = a.Limits.Grace
	}
	if a.state.phase == running && a.state.by == "" {
		a.state.by = reason
		a.appendLog(lineBy, reason)
	}
	a.mu.Unlock()
	if err := a.terminator.End(grace); err != nil {
		return err
	}
	select {
	case <-a.over:
	case <-time.After(exitWait):
		return errors.New("the agent ended, but its exit was not reported")
	}
	a.mu.Lock()
	a.state.phase = gone
	a.mu.Unlock()
	a.s.sweep()
	return nil
}

// kill sends a signal to the agent's process group.
func (a *agent) kill(sig syscall.Signal) error {
	a.s.reaping.Lock() // while the lock is held, reap cannot free the PID for another process
	defer a.s.reaping.Unlock()
	select {
	case <-a.dead:
		return os.ErrProcessDone
	default:
	}
	if !a.root.Running() {
		return os.ErrProcessDone
	}
	return syscall.Kill(-a.root.PID, sig)
}

// updateFlow pauses an agent if its client has much output left to read, and resumes the agent when the client has
// caught up. updateFlow does not pause an agent without a client, because then the journal drops old output beyond its
// size limit.
func (a *agent) updateFlow() {
	lag := a.out.lag()
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.state.flow
	switch {
	case a.state.phase != running || a.state.by != "":
		return
	case a.owner != nil && lag > pauseLag:
		a.state.flow = paused
	case a.owner == nil && was == perhapsPaused && sinceBoot()-a.state.idleFrom < reattachWithin:
		return
	case a.owner == nil || lag < resumeLag || was == perhapsPaused:
		a.state.flow = flowing
	}
	if a.state.flow == was {
		return
	}
	sig := unix.SIGCONT
	if a.state.flow == paused {
		sig = unix.SIGSTOP
	}
	live, err := a.terminator.Tree().Members()
	if err != nil {
		live = []proctree.ID{a.root}
	}
	for _, p := range live {
		_ = p.Signal(sig) // fails only if the process has exited
	}
}

// logFreed logs the offset before which output is freed, if this offset has changed.
func (a *agent) logFreed() {
	freed := a.out.freedUpTo()
	a.mu.Lock()
	more := freed > a.state.freed
	a.state.freed = max(a.state.freed, freed)
	a.mu.Unlock()
	if more {
		a.appendLog(lineFreed, freed)
	}
}

// setOwner changes the client that owns the run. If newOwner is nil, no client owns the run any more. If old is neither
// nil nor the current owner, setOwner does nothing.
func (a *agent) setOwner(old, newOwner *conn) {
	a.mu.Lock()
	changed := old == nil || a.owner == old
	if changed {
		a.owner, a.state.idleFrom = newOwner, sinceBoot()
	}
	a.mu.Unlock()
	if changed {
		a.updateFlow()
		a.s.wake()
	}
}

func (a *agent) setLimits(l Limits) {
	l = l.withDefaults()
	from := sinceBoot()
	a.mu.Lock()
	a.Limits, a.state.ageFrom = l, from
	a.mu.Unlock()
	a.appendLog(lineAge, int64(from), l)
	a.s.wake()
}

// info describes the run. It lists processes only if requested, because that is slow.
func (a *agent) info(processes bool) Info {
	end := a.out.end()
	a.mu.Lock()
	i := Info{
		ID: a.ID, Labels: a.Labels, Runner: os.Getpid(), Command: a.Command, Dir: a.Dir, PID: a.root.PID,
		Started: a.Started, Limits: a.Limits,
		Alive: a.state.phase == running, Attached: a.owner != nil, OutputEnd: end, Freed: a.out.freedUpTo(),
	}
	if a.owner != nil {
		i.AttachedBy = a.owner.pid
	}
	if !i.Alive {
		status := a.state.status
		i.Status = &status
	}
	a.mu.Unlock()
	a.in.fillInfo(&i)
	if !processes {
		return i
	}
	live, err := a.terminator.Tree().Glance()
	if err != nil {
		i.Problem = err.Error()
	}
	for _, p := range live {
		i.Processes++
		i.Memory += proctree.Resident(p.PID)
		if len(i.Members) < maxMembers {
			i.Members = append(i.Members, Member{PID: p.PID, Name: proctree.Name(p.PID)})
		}
	}
	return i
}

// collect ends the remaining processes of the run, and deletes the run's files.
func (a *agent) collect() error {
	if err := a.terminate(ByStop, 0); err != nil {
		return err
	}
	a.s.remove(a)
	a.close()
	_ = a.group(a.s.dir).Remove() // on failure, the next runner removes it
	return os.RemoveAll(filepath.Join(a.s.dir, a.ID))
}

// watchExit waits until an agent exits or ctx is done. The agent is not a child of this process.
func (a *agent) watchExit(ctx context.Context) {
	if err := awaitExit(ctx, a.root.PID); err != nil { // awaitExit failed because the kernel does not support pidfd
		for a.root.Running() && ctx.Err() == nil {
			time.Sleep(pollExitEvery)
		}
	}
	if ctx.Err() == nil {
		a.recordExit(Exit{})
	}
}

func awaitExit(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}
