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
)

const (
	drainIdle   = 500 * time.Millisecond // silence after an agent's exit that counts as the end of its output
	drainMost   = 3 * time.Second        // a grandchild that talks on is cut off here
	drainLook   = 5 * time.Millisecond
	exitWait    = 5 * time.Second // how long a dead agent may take to be seen as that
	retryEnd    = 5 * time.Second // after processes that would not die
	lookEvery   = 30 * time.Second
	noPidfdLook = 100 * time.Millisecond
)

// phase is how far the end of an agent has come.
type phase int

// The phases, in their order.
const (
	running phase = iota
	exited        // the program itself is gone; its output may not be complete
	ended         // its output is complete
	gone          // and nothing that it started runs
)

// agent is a run in the runner.
type agent struct {
	record
	s    *server
	root proctree.ID
	in   *input
	runFiles
	terminator proctree.Terminator
	dead       chan struct{} // closed when it leaves the phase running
	over       chan struct{} // closed when it reaches the phase ended

	mu    sync.Mutex
	life  life
	owner *conn
}

// life is what changes of an agent.
type life struct {
	phase    phase
	status   Status
	by       string // who ended it
	flow     flow
	ageFrom  time.Duration
	idleFrom time.Duration // since when no client owns it
	exitedAt time.Duration
	retryAt  time.Duration // it would not end, and is to be ended again
	freed    int64         // of the output, as the log says
}

// flow is whether an agent may print.
type flow int

const (
	flowing       flow = iota
	paused             // far ahead of its reader
	perhapsPaused      // its runner died, and did not record whether it was paused
)

// reattachWithin is how long an agent of a dead runner stays as it is until its client returns. Without a client the
// journal loses what does not fit, so an agent that was paused stays paused until then.
const reattachWithin = 10 * time.Second

func (s *server) newAgent(rec record) *agent {
	now := sinceBoot()
	a := &agent{record: rec, s: s, in: &input{}, dead: make(chan struct{}), over: make(chan struct{}),
		life: life{ageFrom: now, idleFrom: now}}
	a.terminator.Tree = func() *proctree.Tree { return proctree.New(a.root, Mark(a.ID)).Within(a.group(s.dir)) }
	return a
}

// start starts an agent. A run of its name that is there already gives an error matching fs.ErrExist.
func (s *server) start(spec Spec, owner *conn) (a *agent, err error) {
	if spec, err = spec.resolve(); err != nil {
		return nil, err
	}
	files, err := s.next.take(s.dir, spec.ID)
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
		err = s.store.keep(a.ID, in)
	}
	if err == nil {
		err = a.fork(spec, group, agents)
	}
	if err != nil {
		s.store.drop(a.ID)
		a.close()
		return nil, err
	}
	a.note(lineAgent, int64(a.root.PID), fmt.Sprint(a.root.Start))
	s.add(a)
	return a, nil
}

// fork starts the program; from then on its exit is taken.
func (a *agent) fork(spec Spec, group proctree.Group, agents [2]int) error {
	out, stderr := int(a.out.out.Fd()), int(a.out.err.Fd())
	a.s.reaping.Lock()
	defer a.s.reaping.Unlock()
	pid, err := fork(spec, group, [4]int{agents[0], out, stderr, agents[1]}, a.s.agents)
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Path, err)
	}
	a.root, _ = proctree.LookUp(pid) // it is not reaped yet
	a.s.byPID[pid] = a
	return nil
}

func (a *agent) close() {
	a.runFiles.close()
	a.in.release()
}

// exit takes how the program itself ended, once.
func (a *agent) exit(e Exit) {
	a.mu.Lock()
	a.life.phase, a.life.exitedAt = exited, sinceBoot()
	e.By = a.life.by
	killed := !e.Known || e.Signal && e.Code == -int(unix.SIGKILL)
	if killed && e.By == "" && a.OOMKills != nil {
		kills := proctree.OOMKills()
		e.OOM = kills != nil && *kills > *a.OOMKills
	}
	a.life.status = Status{Exit: e, Exited: time.Now()}
	a.mu.Unlock()
	a.in.release()
	a.s.store.drop(a.ID)
	close(a.dead)
	a.s.wg.Go(a.drain)
}

// drain waits for the end of the output: at once where nothing else runs, and else until that is silent.
func (a *agent) drain() {
	began := time.Now()
	grew, size := began, a.out.end()
	told := false
	for a.terminator.Tree().Held() {
		if !told {
			a.s.tell(a)
			told = true
		}
		time.Sleep(drainLook)
		now := time.Now()
		if s := a.out.end(); s != size {
			grew, size = now, s
		}
		if now.Sub(grew) >= drainIdle || now.Sub(began) >= drainMost {
			break
		}
	}
	a.mu.Lock()
	a.life.phase = ended
	a.life.status.Ended, a.life.status.OutputEnd = true, a.out.end()
	status := a.life.status
	a.mu.Unlock()
	a.note(lineStatus, status)
	a.s.tell(a)
	close(a.over)
	a.s.wake()
}

// end ends the agent and everything it started, and says who wanted that.
func (a *agent) end(by string, grace time.Duration) error {
	a.mu.Lock()
	if a.life.phase == running && a.life.by == "" {
		a.life.by = by
		a.note(lineBy, by)
	}
	a.mu.Unlock()
	if err := a.terminator.End(grace); err != nil {
		return err
	}
	select {
	case <-a.over:
	case <-time.After(exitWait):
		return errors.New("the agent ended, and nothing was told of its exit")
	}
	a.mu.Lock()
	a.life.phase = gone
	a.mu.Unlock()
	a.s.sweep()
	return nil
}

// kill signals the agent's process group.
func (a *agent) kill(sig syscall.Signal) error {
	a.s.reaping.Lock() // its number is its own until it is reaped
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

// pause stops an agent that is far ahead of its reader, and lets it continue once the reader has caught up. It pauses
// no agent without a client: there the bound of the journal holds.
func (a *agent) pause() {
	lag := a.out.lag()
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.life.flow
	switch {
	case a.life.phase != running || a.life.by != "":
		return
	case a.owner != nil && lag > pauseLag:
		a.life.flow = paused
	case a.owner == nil && was == perhapsPaused && sinceBoot()-a.life.idleFrom < reattachWithin:
		return
	case a.owner == nil || lag < resumeLag || was == perhapsPaused:
		a.life.flow = flowing
	}
	if a.life.flow == was {
		return
	}
	sig := unix.SIGCONT
	if a.life.flow == paused {
		sig = unix.SIGSTOP
	}
	live, err := a.terminator.Tree().Members()
	if err != nil {
		live = []proctree.ID{a.root}
	}
	for _, p := range live {
		_ = p.Signal(sig) // one that is gone prints nothing
	}
}

// noteFreed notes how much of the output is freed, if that is more than was noted.
func (a *agent) noteFreed() {
	freed := a.out.from()
	a.mu.Lock()
	more := freed > a.life.freed
	a.life.freed = max(a.life.freed, freed)
	a.mu.Unlock()
	if more {
		a.note(lineFreed, freed)
	}
}

// setOwner makes a connection the owner, or none the owner if it is old's.
func (a *agent) setOwner(old, owner *conn) {
	a.mu.Lock()
	changed := old == nil || a.owner == old
	if changed {
		a.owner, a.life.idleFrom = owner, sinceBoot()
	}
	a.mu.Unlock()
	if changed {
		a.pause()
		a.s.wake()
	}
}

func (a *agent) limit(l Limits) {
	l = l.withDefaults()
	a.mu.Lock()
	a.Limits, a.life.ageFrom = l, sinceBoot()
	from := a.life.ageFrom
	a.mu.Unlock()
	a.note(lineAge, int64(from), l)
	a.s.wake()
}

func (a *agent) status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.life.status
}

// info is what can be told of the run; with its processes if they are wanted.
func (a *agent) info(processes bool) Info {
	end := a.out.end()
	a.mu.Lock()
	i := Info{
		ID: a.ID, Labels: a.Labels, Runner: os.Getpid(), Command: a.Command, Dir: a.Dir, PID: a.root.PID,
		Started: a.Started, Limits: a.Limits,
		Alive: a.life.phase == running, Attached: a.owner != nil, OutputEnd: end, Freed: a.out.from(),
	}
	if a.owner != nil {
		i.AttachedBy = a.owner.pid
	}
	if !i.Alive {
		status := a.life.status
		i.Status = &status
	}
	a.mu.Unlock()
	a.in.tell(&i)
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
		if len(i.Members) < mostMembers {
			i.Members = append(i.Members, Member{PID: p.PID, Name: proctree.Name(p.PID)})
		}
	}
	return i
}

// collect ends what is left of the run and removes it.
func (a *agent) collect() error {
	if err := a.end(ByStop, 0); err != nil {
		return err
	}
	a.s.remove(a)
	a.close()
	_ = a.group(a.s.dir).Remove() // one that stays is swept at the next start
	return os.RemoveAll(filepath.Join(a.s.dir, a.ID))
}

// watchExit waits for the end of an agent that is no child of ours, until ctx is done.
func (a *agent) watchExit(ctx context.Context) {
	if err := awaitExit(ctx, a.root.PID); err != nil { // a kernel without pidfd
		for a.root.Running() && ctx.Err() == nil {
			time.Sleep(noPidfdLook)
		}
	}
	if ctx.Err() == nil {
		a.exit(Exit{})
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
