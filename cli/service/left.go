package service

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"time"

	"ductor/cli"
)

// leftTurn is a run that the previous process of ductor started. If no turn was running in it, it may have background
// work.
type leftTurn struct {
	runEnv  *runEnv
	from    cli.Launcher
	run     cli.LeftRun
	account cli.Account // empty if unknown
	at      *pooled     // the session's entry in the pool
}

// has reports whether t was running in this run.
func (l *leftTurn) has(t cli.OpenTurn) bool {
	return t.Start.Run == l.run.Run && l.runEnv.sandbox == t.Sandbox && l.run.Agent == t.Agent
}

// mark returns the Mark at which an open turn starts in the output and input of its run.
func mark(t cli.OpenTurn) cli.Mark {
	m := cli.Mark{Turn: t.Turn, Output: t.Start.Output, Input: t.Start.Input, Note: t.Start.Note}
	if t.Background {
		m.Turn = cli.BackgroundMark
	}
	return m
}

// entry returns the run's agent with its account. It returns nil if the agent or the account is no longer configured.
func (l leftTurn) entry() *agentEntry { return l.runEnv.account(l.run.Agent, l.account) }

func (l leftTurn) closeKey() closeKey {
	return closeKey{l.runEnv.sandbox, l.run.Conversation, l.run.Agent}
}

// endUseless ends a run that ductor does not attach to. It logs a warning if there was a problem.
func (s *Service) endUseless(r leftTurn) {
	if r.run.Problem != "" {
		s.opts.Logger.Warn("cannot resume a run of the previous process; it is ended", "run", r.run.Run,
			"agent", string(r.run.Agent),
			"conversation", string(r.run.Conversation), "pid", r.run.PID, "why", r.run.Problem)
	}
	s.discardLeft(r)
}

// countAttaching adds n to the number of callers that want to attach to a run of the previous process. While that
// number is not 0, Service.sighted does not end the run. A caller passes 1 before it attaches, and -1 afterwards.
func (s *Service) countAttaching(run cli.RunID, n int) {
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	s.countAttachingLocked(run, n)
}

// countAttachingLocked is countAttaching for callers that hold leftMu.
func (s *Service) countAttachingLocked(run cli.RunID, n int) {
	s.attaching[run] += n
	if s.attaching[run] == 0 {
		delete(s.attaching, run)
	}
}

// attachingNow returns how many callers want to attach to each run; see countAttaching. Code that ends runs must first
// call attachingNow and then list the runs. It must not end a run that the result of attachingNow contains.
func (s *Service) attachingNow() map[cli.RunID]int {
	s.leftMu.Lock()
	defer s.leftMu.Unlock()
	return maps.Clone(s.attaching)
}

const adoptWait = 10 * time.Second

func (s *Service) adopt(ctx context.Context, entry *agentEntry, run cli.LeftRun,
	req cli.Request) (session cli.Session, err error) {
	// Attach even if the turn was aborted. Without a session, ductor could not interrupt the turn, but only kill the
	// agent.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adoptWait)
	defer cancel()
	err = guard(run.Agent, func() (err error) {
		session, err = entry.provider.Adopt(ctx, run, req)
		return err
	})
	return session, err
}

// discardLeft discards a run of the previous process of ductor in the background.
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
		s.opts.Logger.Error("end a run of the previous process", "run", left.run.Run, "pid", left.run.PID, "err", err)
		if !errors.Is(err, fs.ErrNotExist) {
			s.missed(left.runEnv, err)
		}
	}()
}

// Resume continues a turn of the previous process for which Survey returned RemainsRun. It works like Run, but uses the
// environment of the existing run and never repeats the prompt.
func (s *Service) Resume(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	s.leftMu.Lock()
	if left := s.left[req.Turn]; left != nil {
		req.Sandbox = left.runEnv.sandbox
		if left.entry() == nil { // the agent is no longer configured
			delete(s.left, req.Turn)
			s.countAttachingLocked(left.run.Run, -1)
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
	a.result.Err = entry.named(a.result.Err)
	s.settle(ctx, entry.runEnv, &a, func() { emit(a.result) })
	return a.result
}

func (s *Service) attemptLeft(ctx context.Context, entry *agentEntry, left *leftTurn, req cli.Request,
	emit func(cli.Event)) attempt {
	agent := entry.provider.Agent()
	if left.run.Problem != "" {
		s.opts.Logger.Warn("a turn cannot be resumed; its run is ended", "run", left.run.Run, "agent", string(agent),
			"turn", string(req.Turn), "pid", left.run.PID, "why", left.run.Problem)
		s.countAttaching(left.run.Run, -1)
		s.discardLeft(*left)
		return attempt{result: cli.Result{Err: cli.Failf(cli.UnknownFailure, agent,
			"it cannot be resumed and was ended, because %s", left.run.Problem)}}
	}
	there := req
	there.AddDirs, there.Files = nil, nil // these files were copied when the turn started
	there, err := s.furnish(ctx, entry, there, nil)
	req.Home = there.Home
	var session cli.Session
	// If the turn was cut short, attach to the run in spite of an error; see adopt.
	if err == nil || ctx.Err() != nil {
		session, err = s.adopt(ctx, entry, left.run, req)
	}
	s.countAttaching(left.run.Run, -1)
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

// Settled tells all launchers that ductor has stored the outcome of a turn. The launchers then delete the agent's
// output; see cli.Launcher. So Settled first waits, in the background, until the outcome will survive a power failure.
// If the outcome were lost after the output was deleted, the next process of ductor would replace the answer in the
// chat by an older text.
func (s *Service) Settled(turn cli.TurnID) {
	if s.runEnvs.addSettled(turn) {
		s.work.spawn(s.flushSettled)
	}
}

// flushSettled tells the launchers about turns whose outcomes are on the disk; see Settled. It returns when no turn
// remains, or when the Service closes. Only one goroutine may run it at a time.
func (s *Service) flushSettled() {
	for turns := s.runEnvs.settledAfter(0); len(turns) > 0; turns = s.runEnvs.settledAfter(len(turns)) {
		if !s.flushOutcomes() {
			return
		}
		for _, at := range s.runEnvs.list() {
			for _, l := range at.launchers {
				for _, turn := range turns {
					l.Settled(turn)
				}
			}
		}
	}
}

const flushRetry = time.Minute

// flushOutcomes flushes until a flush succeeds. It returns false if the Service closes before that.
func (s *Service) flushOutcomes() bool {
	for {
		err := s.opts.Flush(s.base)
		if err == nil {
			return true
		}
		s.opts.Logger.Error("flush outcomes; the output of their agents stays", "err", err, "again_in", flushRetry)
		select {
		case <-time.After(flushRetry):
		case <-s.base.Done():
			return false
		}
	}
}
