package service

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"time"

	"ductor/cli"
)

// leftTurn is a run that was left, such as one that has an open turn.
type leftTurn struct {
	runEnv *runEnv
	from   cli.Launcher
	run    cli.LeftRun
	at     *pooled // what it has in the pool
}

// has says whether the turn begins in the run, which was found where the turn ran.
func (l *leftTurn) has(t cli.OpenTurn) bool {
	return t.Start.Run == l.run.Run && l.runEnv.sandbox == t.Sandbox && l.run.Agent == t.Agent
}

// mark is how the run's dialect is told where the turn begins.
func mark(t cli.OpenTurn) cli.Mark {
	m := cli.Mark{Turn: t.Turn, Output: t.Start.Output, Input: t.Start.Input, Note: t.Start.Note}
	if t.Background {
		m.Turn = cli.BackgroundMark
	}
	return m
}

func (l leftTurn) closeKey() closeKey {
	return closeKey{l.runEnv.sandbox, l.run.Conversation, l.run.Agent}
}

// endUseless ends a run of which no turn is to be resumed.
func (s *Service) endUseless(r leftTurn) {
	if r.run.Problem != "" {
		s.opts.Logger.Warn("a run that was left cannot be resumed; it is ended", "run", r.run.Run, "agent", string(r.run.Agent),
			"conversation", string(r.run.Conversation), "pid", r.run.PID, "why", r.run.Problem)
	}
	s.discardLeft(r)
}

// spare keeps a run that is not this process's yet from being ended as useless: n is 1 for one more who is about to attach
// to it, and -1 for one who has, or will not.
func (s *Service) spare(run cli.RunID, n int) {
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	s.spareLocked(run, n)
}

// spareLocked is called with leftMu held.
func (s *Service) spareLocked(run cli.RunID, n int) {
	s.spared[run] += n
	if s.spared[run] == 0 {
		delete(s.spared, run)
	}
}

// sparedNow are the runs that are spared. It is asked for before a look at what was left: one that is not among them any
// more by then is this process's.
func (s *Service) sparedNow() map[cli.RunID]int {
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	return maps.Clone(s.spared)
}

// adoptWait is how long it may take to attach to a run.
const adoptWait = 10 * time.Second

func (s *Service) adopt(ctx context.Context, entry *agentEntry, run cli.LeftRun, req cli.Request) (session cli.Session, err error) {
	// Also a turn that was aborted is attached to, to end it in order.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adoptWait)
	defer cancel()
	err = guard(run.Agent, func() (err error) {
		session, err = entry.provider.Adopt(ctx, run, req)
		return err
	})
	return session, err
}

// discardLeft ends a run in the background.
func (s *Service) discardLeft(left leftTurn) {
	s.pool.do(func() { s.pool.beginClose(left.at) })
	go func() {
		defer s.work.Done()
		defer s.pool.leave(left.at)
		ctx, cancel := context.WithTimeout(context.Background(), s.opts.Grace+cli.StopSlack)
		defer cancel()
		err := left.from.Discard(ctx, left.run.Run)
		if err == nil {
			return
		}
		s.opts.Logger.Error("end a run that was left", "run", left.run.Run, "pid", left.run.PID, "err", err)
		if !errors.Is(err, fs.ErrNotExist) {
			s.missed(left.runEnv, err)
		}
	}()
}

// Resume goes on with a turn of which Survey said that a run has it, where that run is, like Run in the rest.
// Nothing is asked again.
func (s *Service) Resume(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	s.leftMu.Lock()
	if left := s.left[req.Turn]; left != nil {
		req.Sandbox = left.runEnv.sandbox
		if left.runEnv.agents[agent] == nil { // it is not configured any more
			delete(s.left, req.Turn)
			s.spareLocked(left.run.Run, -1)
			s.discardLeft(*left)
		}
	}
	s.leftMu.Unlock()
	return s.serve(ctx, agent, req, emit, s.resume)
}

func (s *Service) resume(ctx context.Context, entry *agentEntry, req cli.Request, emit func(cli.Event)) cli.Result {
	s.leftMu.Lock()
	left := s.left[req.Turn]
	delete(s.left, req.Turn)
	s.leftMu.Unlock()
	agent := entry.provider.Agent()
	if left == nil {
		return emitted(emit, cli.Result{Err: cli.Failf(cli.UnknownFailure, agent, "nothing is left of this turn")})
	}
	a := s.attemptLeft(ctx, entry, left, req, emit)
	a.result.Err = entry.runEnv.named(a.result.Err)
	s.settle(ctx, entry.runEnv, &a, func() { emit(a.result) })
	return a.result
}

func (s *Service) attemptLeft(ctx context.Context, entry *agentEntry, left *leftTurn, req cli.Request, emit func(cli.Event)) attempt {
	agent := entry.provider.Agent()
	if left.run.Problem != "" {
		s.opts.Logger.Warn("a turn cannot be resumed; its run is ended", "run", left.run.Run, "agent", string(agent),
			"turn", string(req.Turn), "pid", left.run.PID, "why", left.run.Problem)
		s.spare(left.run.Run, -1)
		s.discardLeft(*left)
		return attempt{result: cli.Result{Err: cli.Failf(cli.UnknownFailure, agent, "it cannot be resumed and was ended, because %s", left.run.Problem)}}
	}
	there := req
	there.AddDirs, there.Files = nil, nil // they were brought when it began
	there, err := s.furnish(ctx, entry, there, nil)
	req.Home = there.Home
	var session cli.Session
	if err == nil || ctx.Err() != nil { // also what was aborted is attached to, to end it in order
		session, err = s.adopt(ctx, entry, left.run, req)
	}
	s.spare(left.run.Run, -1)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), cli.ErrDetached):
		s.pool.leave(left.at)
		return attempt{result: cli.Result{Detached: true}}
	case err != nil:
		s.discardLeft(*left)
		return attempt{result: cli.Result{Err: entry.runEnv.lost(agent, err)}}
	}
	s.pool.lend(left.at, req.Conversation, session)
	return s.attemptIn(ctx, left.at, req, emit)
}

// Settled says that the outcome of a turn is recorded, so that nothing need be kept to go on with it.
func (s *Service) Settled(turn cli.TurnID) {
	for _, at := range s.runEnvs.list() {
		for _, l := range at.launchers {
			l.Settled(turn)
		}
	}
}
