package service

import (
	"context"
	"errors"
	"slices"
	"sync"

	"ductor/cli"
)

// resultGuard passes events from a provider to the turn's listener, and records what the listener has received. It
// holds back the Result until judge has checked the Result. After close, it passes on nothing.
type resultGuard struct {
	agent cli.Agent
	waits func(asked cli.ApprovalID, waiting bool) // called when a request starts or stops waiting for a user
	began func(cli.AgentSessionID)                 // called when the agent names its session

	mu     sync.Mutex
	emit   func(cli.Event) // nil after close
	result *cli.Result
	answer cli.Answer
	named  cli.SessionStarted
	tools  []cli.ToolID // tools that have not ended
	shown  bool         // the listener received text or a tool, so the turn must not be repeated
}

func (w *resultGuard) event(ev cli.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.emit == nil || w.result != nil {
		return
	}
	switch ev := ev.(type) {
	case cli.Result:
		w.result = &ev
		return
	case cli.SessionStarted:
		if ev.AgentSessionID != w.named.AgentSessionID {
			w.began(ev.AgentSessionID)
		}
		w.named = ev
	case cli.TextDelta, cli.FileChanged:
		w.shown = true
	case cli.ApprovalAsked:
		w.shown = true
		w.waits(ev.ID, true)
	case cli.QuestionAsked:
		w.shown = true
		w.waits(ev.ID, true)
	case cli.ApprovalWithdrawn:
		w.waits(ev.ID, false)
	case cli.ToolStarted:
		w.shown = true
		w.tools = append(w.tools, ev.ID)
	case cli.ToolEnded:
		w.tools = slices.DeleteFunc(w.tools, func(id cli.ToolID) bool { return id == ev.ID })
	}
	w.answer.Add(ev)
	w.emit(ev)
}

// close stops passing on events. It returns the provider's Result and true. If the provider emitted no Result, close
// returns a Result with the text so far and false. close emits a ToolEnded for each open tool, unless ductor detached
// from the turn.
func (w *resultGuard) close(ctx context.Context) (r cli.Result, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	emit := w.emit
	w.emit = nil
	if w.result != nil {
		return *w.result, true
	}
	goesOn := errors.Is(context.Cause(ctx), cli.ErrDetached)
	for _, id := range w.tools {
		if !goesOn {
			emit(cli.ToolEnded{ID: id, Err: cli.ToolCutShort})
		}
	}
	return cli.Result{Text: w.answer.String(), AgentSessionID: w.named.AgentSessionID, Model: w.named.Model}, false
}

type attempt struct {
	result cli.Result
	shown  bool
	lent   *pooled       // pool entry of the session that ran the turn; nil if no session was opened
	late   chan struct{} // set if the provider's Open did not return in time; closed when Open has returned
}

// attempt runs req once in the given mode. It emits all events except the Result.
func (s *Service) attempt(ctx context.Context, entry *agentEntry, mode cli.Mode, req cli.Request,
	emit func(cli.Event)) attempt {
	agent, waited := entry.provider.Agent(), false
	lent, err := s.pool.acquire(ctx, entry, mode, req, nil, func(now shortage) {
		waited = true
		emit(cli.Status{Kind: cli.StatusWaiting, Detail: now.sentence(req.Lang.Printer())})
	})
	if err != nil {
		return attempt{result: cli.Cut(ctx, agent)}
	}
	if waited {
		emit(cli.Status{Kind: cli.StatusIdle})
	}
	if lent.session == nil {
		emit(cli.Status{Kind: cli.StatusStarting}) // users see this status until SessionStarted
		session, late, err := s.open(ctx, entry, mode, req, lent, emit)
		switch {
		case ctx.Err() != nil && session == nil:
			return attempt{result: cli.Cut(ctx, agent), late: late}
		case err != nil:
			return attempt{result: cli.Result{Err: cli.AsFailure(agent, err)}}
		}
		s.pool.lend(lent, req.Conversation, session)
	}
	return s.attemptIn(ctx, lent, req, emit)
}

// attemptIn runs the turn in an open session.
func (s *Service) attemptIn(ctx context.Context, lent *pooled, req cli.Request, emit func(cli.Event)) attempt {
	w := &resultGuard{
		agent: lent.agent, emit: emit, waits: func(id cli.ApprovalID, waiting bool) { s.pool.waitsForUser(lent, id, waiting) },
		began: func(id cli.AgentSessionID) { s.recordBegun(req, id) },
	}
	err := s.runTurn(ctx, lent, req, w)
	r, ok := w.close(ctx)
	return attempt{result: judge(ctx, w, r, ok, err), shown: w.shown, lent: lent}
}

// recordBegun stores the ID of a new session. It does not wait for the store.
func (s *Service) recordBegun(req cli.Request, id cli.AgentSessionID) {
	if id == req.Resume {
		return
	}
	s.work.Go(func() {
		if err := s.opts.Began(context.WithoutCancel(s.base), id); err != nil {
			s.opts.Logger.Error("store the ID of a new agent session", "turn", req.Turn, "err", err)
		}
	})
}

// open opens the session of the entry e. If the provider's Open fails, open removes e from the pool.
//
// If ctx ends before the provider's Open returns, open does not wait, and the result late is a channel. A goroutine
// then waits for Open, closes the session that Open may return, and closes the channel.
func (s *Service) open(ctx context.Context, entry *agentEntry, mode cli.Mode, req cli.Request, e *pooled,
	emit func(cli.Event)) (session cli.Session, late chan struct{}, err error) {
	type opened struct {
		session cli.Session
		err     error
	}
	came := beside(s.work, func() (o opened) {
		o.err = guard(e.agent, func() (err error) {
			o.session, err = entry.provider.Open(ctx, mode, req)
			return err
		})
		if o.err != nil {
			s.pool.leave(e)
			o.session = nil
		}
		return o
	})
	if o, ok := awaitPlace(ctx, entry.runEnv, req.Lang.Printer(), emit, came); ok {
		return o.session, nil, o.err
	}
	late = make(chan struct{})
	s.work.Go(func() {
		defer close(late)
		if o := <-came; o.session != nil {
			e.session = o.session
			_ = s.pool.discard(e)
		}
	})
	return nil, late, nil
}

// runTurn runs the session's Turn. If Turn does not return in time after ctx is done, runTurn stops waiting and returns
// a Failure.
func (s *Service) runTurn(ctx context.Context, lent *pooled, req cli.Request, w *resultGuard) error {
	leave := s.present.enter(req, lent)
	defer func() {
		if !leave(s.pool.closeWait()) {
			s.pool.expireAfter(lent)
		}
	}()
	over := beside(s.work, func() error {
		return guard(lent.agent, func() error {
			lent.session.Turn(ctx, req, w.event)
			return nil
		})
	})
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	patience, stop := context.WithTimeout(context.Background(), s.pool.closeWait())
	defer stop()
	select {
	case err := <-over:
		return err
	case <-patience.Done():
		return cli.Failf(cli.BadOutput, lent.agent, "it did not detach from the turn")
	}
}
