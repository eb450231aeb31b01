package service

import (
	"context"
	"time"

	"ductor/cli"
)

// warmLimit limits how long opening a session ahead of its turn may take. If the turn starts meanwhile, it waits for
// the session.
const warmLimit = time.Minute

// Warm opens a session for req before the user sends the message, so that the turn starts faster. It returns at once.
// It closes the conversation's idle session if the session does not fit req. It does nothing if the conversation has a
// turn, or if a process of another conversation would have to end.
//
// The next Run uses the session if it fits. Otherwise the session is closed after the idle limit. Warm ignores
// failures, because the turn reports them. If Warm is called again for the conversation, the first call is cancelled.
func (s *Service) Warm(agent cli.Agent, req cli.Request) {
	entry, failure := s.at(req.Sandbox, agent, req.Accounts[agent])
	if failure == nil {
		req, failure = entry.limited(req)
	}
	if failure != nil || s.registry.HasActive(req.Conversation) {
		return
	}
	if entry.runEnv.homes != nil && req.Session == "" { // without the session's name, its home is unknown
		return
	}
	s.work.spawn(func() { s.warm(entry, req) })
}

func (s *Service) warm(entry *agentEntry, req cli.Request) {
	w := &warmUp{}
	w.ctx, w.cancel = context.WithTimeout(s.base, warmLimit)
	defer w.cancel()
	if mode, err := s.mode(w.ctx, entry); err != nil || mode != cli.Live {
		return
	}
	req, err := s.ready(w.ctx, entry, req, nil)
	if err != nil {
		s.opts.Logger.Info("an agent could not be started ahead", "agent", string(entry.provider.Agent()), "err", err)
		return
	}
	s.pool.do(func() { s.pool.cancelAhead(req.Conversation) })
	e, err := s.pool.acquire(w.ctx, entry, cli.Live, req, w, nil)
	if e == nil || err != nil {
		return
	}
	session := e.session // not nil if the idle session fits
	if session == nil {
		var late chan struct{}
		session, late, err = s.open(w.ctx, entry, cli.Live, req, e, nil)
		if late != nil && !s.awaitLate(late) { // Open has still not returned, but turns must not wait any longer
			s.pool.giveUp(e)
		}
	}
	switch {
	case err != nil:
		s.opts.Logger.Info("an agent could not be started ahead", "agent", string(entry.provider.Agent()), "err", err)
	case session != nil && !s.pool.keep(e, session):
		_ = s.pool.discard(e)
	}
}
