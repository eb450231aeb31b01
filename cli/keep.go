package cli

import (
	"context"
	"errors"
	"sync"
	"time"
)

// keptSession is a Kept in the pool. It is idle from its beginning to its end.
type keptSession struct {
	Kept
	agent Agent

	mu   sync.Mutex
	left bool
	err  error // of Close
}

func (k *keptSession) Info() SessionInfo {
	return SessionInfo{Agent: k.agent, Mode: Live, PID: k.PID, Alive: k.Alive()}
}

func (k *keptSession) Fits(Request) bool { return false }

func (k *keptSession) Turn(_ context.Context, _ Request, emit func(Event)) {
	emit(Result{Err: Failf(UnknownFailure, k.agent, "a process that is kept for others takes no turn itself")})
}

func (k *keptSession) Close(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.left {
		k.left = true
		k.err = k.Kept.Close(ctx)
	}
	return k.err
}

func (k *keptSession) Detach() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.left {
		k.left = true
		k.Kept.Detach()
	}
}

// keepShared has a process of several conversations taken over in the background, if nothing runs in it. A session
// that is opened during that waits for it, or has a process of its own started; then the one that was left is ended.
func (s *Service) keepShared(left leftTurn) bool {
	entry := s.liveEntry(left)
	if entry == nil || left.run.Conversation != "" || s.pool.tooMany() {
		return false
	}
	keeper, can := entry.provider.(Keeper)
	if _, rests := left.run.Rested(); !can || !rests {
		return false
	}
	s.spare(left.run.Run, 1)
	if s.work.spawn(func() { s.keep(entry, keeper, left) }) {
		return true
	}
	s.spare(left.run.Run, -1)
	return false
}

// keepWait is how long it may take to take over a process that is kept. Only sessions for it wait that long.
const keepWait = 30 * time.Second

func (s *Service) keep(entry *agentEntry, keeper Keeper, left leftTurn) {
	ctx, cancel := context.WithTimeout(s.base, keepWait)
	defer cancel()
	var kept Kept
	err := guard(left.run.Agent, func() (err error) {
		kept, err = keeper.Keep(ctx, left.run)
		return err
	})
	s.spare(left.run.Run, -1)
	if err == nil && s.pool.keep(entry, "", &keptSession{Kept: kept, agent: left.run.Agent}, left.at) {
		left.forgetRecorded(nil)
		left.attached()
		return
	}
	if err == nil { // the service ends
		kept.Detach()
	}
	if errors.Is(context.Cause(s.base), ErrDetached) {
		s.pool.leave(left.at)
		return
	}
	if err != nil && s.base.Err() == nil {
		s.opts.Logger.Info("an agent that served several conversations is not kept; it is ended", "run", left.run.Run,
			"agent", string(left.run.Agent), "pid", left.run.PID, "why", err)
	}
	s.discardLeft(left)
}
