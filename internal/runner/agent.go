package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// agent is the runner's representation of a run: the agent program with its process tree, files and limits.
type agent struct {
	s      *server
	record record // content of run.json; a later change of the limits is not in it
	life   *lifecycle
	root   proctree.ID
	in     *input
	runFiles
	terminator proctree.Terminator
}

// newAgent returns an agent for a run. The caller then starts the agent's program, or takes over the running program.
func (s *server) newAgent(rec record, files runFiles, owner *conn) *agent {
	a := &agent{
		s: s, record: rec, life: newLifecycle(files.log, rec.Limits, owner), in: &input{}, runFiles: files,
	}
	a.terminator.Tree = func() *proctree.Tree {
		return proctree.New(a.root, Mark(rec.ID)).Within(rec.group(s.dir.path))
	}
	return a
}

// start starts an agent. The error matches fs.ErrExist if the ID is in use.
func (s *server) start(spec Spec, owner *conn) (a *agent, err error) {
	if spec, err = spec.resolve(); err != nil {
		return nil, err
	}
	files, err := s.prepared.claim(s.dir.path, spec.ID)
	if err != nil {
		return nil, err
	}
	group := s.children.makeGroup(s.dir.path, spec.ID)
	defer func() {
		if err != nil {
			err = errors.Join(err, group.Remove(), os.RemoveAll(s.dir.of(spec.ID)))
		}
	}()
	a = s.newAgent(record{
		Version: Version, ID: spec.ID, Boot: proctree.BootID(), Started: time.Now(), Command: spec.shown(),
		Dir:    spec.Dir,
		Labels: spec.Labels, Limits: spec.Limits.withDefaults(), Group: group.Path, OOMKills: proctree.OOMKills(),
	}, files, owner)
	agents, in, inode, err := newInput()
	if err != nil {
		a.close()
		return nil, err
	}
	defer unix.Close(agents[0])
	defer unix.Close(agents[1])
	a.in, a.record.Socket = in, inode
	if err = a.record.write(s.dir.path); err == nil {
		err = s.holder.store.Put(a.record.ID, in.end)
	}
	if err == nil {
		out, stderr := a.out.Files()
		program := fork.Program{Path: spec.Path, Dir: spec.Dir, Args: spec.Args, Env: spec.environment()}
		err = s.children.start(a, program, group, [4]int{agents[0], int(out.Fd()), int(stderr.Fd()), agents[1]})
	}
	if err != nil {
		s.holder.store.Delete(a.record.ID)
		a.close()
		return nil, err
	}
	a.log.append(lineAgent, int64(a.root.PID), fmt.Sprint(a.root.Start))
	s.add(a)
	return a, nil
}

func (a *agent) close() {
	a.runFiles.close()
	a.in.close()
}

// recordExit records how the program ended. It is called once.
func (a *agent) recordExit(e Exit) {
	killed := !e.Known || e.Signal && e.Code == -int(unix.SIGKILL)
	if before := a.record.OOMKills; killed && before != nil {
		kills := proctree.OOMKills()
		e.OOM = kills != nil && *kills > *before
	}
	a.life.exit(e)
	a.in.close()
	a.s.holder.store.Delete(a.record.ID)
	a.s.life.Go(a.awaitOutputEnd)
}

// awaitOutputEnd waits for the end of the output. It returns at once if no other process of the run is left. If a
// process is left, it returns when no output has arrived for drainIdle, or after drainMax.
func (a *agent) awaitOutputEnd() {
	began := time.Now()
	grew, size := began, a.out.End()
	told := false
	for a.terminator.Tree().Held() {
		if !told {
			a.s.clients.broadcast(a.endReport())
			told = true
		}
		time.Sleep(drainInterval)
		now := time.Now()
		if s := a.out.End(); s != size {
			grew, size = now, s
		}
		if now.Sub(grew) >= drainIdle || now.Sub(began) >= drainMax {
			break
		}
	}
	a.life.endOutput(a.out.End())
	a.s.clients.broadcast(a.endReport())
	close(a.life.over)
	a.s.wake()
}

// terminate ends the agent and all its descendants, for the given reason (a By constant).
func (a *agent) terminate(reason string, grace time.Duration) error {
	a.life.beginEnd(reason)
	if err := a.terminator.End(grace); err != nil {
		return err
	}
	select {
	case <-a.life.over:
	case <-time.After(exitWait):
		return errors.New("the agent ended, but its exit was not reported")
	}
	a.life.finish()
	a.s.sweep()
	return nil
}

// updateFlow pauses or resumes the agent, depending on how far its client has read the output.
func (a *agent) updateFlow() { a.life.updateFlow(a.out.Lag(), a.signalAll) }

func (a *agent) signalAll(sig syscall.Signal) {
	live, err := a.terminator.Tree().Members()
	if err != nil {
		live = []proctree.ID{a.root}
	}
	for _, p := range live {
		_ = p.Signal(sig) // fails only if the process has exited
	}
}

// logFreed records in the run's log how much output the journal has deleted. It writes nothing if the journal has
// deleted nothing since the last call.
func (a *agent) logFreed() {
	if freed, changed := a.out.TakeFreed(); changed {
		a.log.append(lineFreed, freed)
	}
}

// setOwner changes the client that owns the run; see lifecycle.setOwner.
func (a *agent) setOwner(old, newOwner *conn) {
	if a.life.setOwner(old, newOwner) {
		a.updateFlow()
		a.s.wake()
	}
}

func (a *agent) setLimits(l Limits) {
	a.life.setLimits(l.withDefaults())
	a.s.wake()
}

// info describes the run. It lists processes only if requested, because that is slow.
func (a *agent) info(processes bool) Info {
	r := a.record
	i := Info{
		ID: r.ID, Labels: r.Labels, Runner: os.Getpid(), Command: r.Command, Dir: r.Dir, PID: a.root.PID,
		Started: r.Started, OutputEnd: a.out.End(), Freed: a.out.Freed(),
	}
	a.life.fillInfo(&i)
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
	_ = a.record.group(a.s.dir.path).Remove() // on failure, the next runner removes the control group
	return os.RemoveAll(a.s.dir.of(a.record.ID))
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
