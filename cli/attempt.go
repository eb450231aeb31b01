package cli

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// watch stands between a provider and whoever listens to a turn: it holds the Result back until it is
// judged, remembers what was shown, and lets nothing through once the turn is closed.
type watch struct {
	agent Agent
	emit  func(Event)
	waits func(asked AskID, waiting bool) // is told when the agent begins and ceases to wait for its user

	mu     sync.Mutex
	closed bool
	result *Result
	answer Answer
	named  SessionStarted
	tools  []ToolID // open
	shown  bool     // text or a tool: then the turn is not repeated
	cut    bool     // a tool was ended because the turn was
}

// event is the emit a provider gets.
func (w *watch) event(ev Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.result != nil {
		return
	}
	switch ev := ev.(type) {
	case Result:
		w.result = &ev
		return
	case SessionStarted:
		w.named = ev
	case TextDelta, FileChanged:
		w.shown = true
	case ApprovalAsked: // what is allowed may be done
		w.shown = true
		w.waits(ev.ID, true)
	case QuestionAsked:
		w.shown = true
		w.waits(ev.ID, true)
	case AskWithdrawn:
		w.waits(ev.ID, false)
	case ToolStarted:
		w.shown = true
		w.tools = append(w.tools, ev.ID)
	case ToolEnded:
		w.cut = w.cut || ev.Err == ToolCutShort
		w.tools = slices.DeleteFunc(w.tools, func(id ToolID) bool { return id == ev.ID })
	}
	w.answer.Add(ev)
	w.emit(ev)
}

// close ends the turn for the provider. If it gave no Result, ok is false, tools that are open are
// ended, and the Result says what is known.
func (w *watch) close() (r Result, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.result != nil {
		return *w.result, true
	}
	for _, id := range w.tools {
		w.cut = true
		w.emit(ToolEnded{ID: id, Err: ToolCutShort})
	}
	return Result{Text: w.answer.String(), AgentSessionID: w.named.AgentSessionID, Model: w.named.Model}, false
}

// attempt is one try to run a turn.
type attempt struct {
	result Result
	shown  bool
	lent   *pooled       // nil if no session was opened
	late   chan struct{} // closed when an Open that was given up is over; nil if there is none
}

// attempt runs req once, in mode. It emits everything but the Result.
func (s *Service) attempt(ctx context.Context, entry *agentEntry, mode Mode, req Request, emit func(Event)) attempt {
	agent := entry.provider.Agent()
	lent := s.pool.borrow(ctx, entry, mode, req)
	if lent == nil {
		at, err := s.place(ctx, entry, mode, req, emit)
		if err != nil {
			return attempt{result: Cut(ctx, agent)}
		}
		emit(Status{Kind: StatusStarting}) // until SessionStarted
		session, late, err := s.open(ctx, entry, mode, req, at, emit)
		switch {
		case ctx.Err() != nil && session == nil:
			return attempt{result: Cut(ctx, agent), late: late}
		case err != nil:
			return attempt{result: Result{Err: AsFailure(agent, err)}}
		}
		lent = s.pool.lend(entry, mode, req.Conversation, session, at)
	}
	return s.attemptIn(ctx, lent, req, emit)
}

// attemptIn runs req once in a session that is lent to it.
func (s *Service) attemptIn(ctx context.Context, lent *pooled, req Request, emit func(Event)) attempt {
	w := &watch{agent: lent.agent, emit: emit, waits: func(ask AskID, waiting bool) { s.pool.waitsForUser(lent, ask, waiting) }}
	err := s.runTurn(ctx, lent, req, w)
	r, ok := w.close()
	s.pool.turnEnded(lent)
	return attempt{result: judge(ctx, w, r, ok, err), shown: w.shown, lent: lent}
}

// place waits until a process may be started for req, and tells of it if that is not at once. The error says
// that ctx is done.
func (s *Service) place(ctx context.Context, entry *agentEntry, mode Mode, req Request, emit func(Event)) (*place, error) {
	waited := false
	at, err := s.pool.acquire(ctx, entry, mode, req, func(now shortage) {
		waited = true
		emit(Status{Kind: StatusWaiting, Detail: now.sentence()})
	})
	if waited && err == nil {
		emit(Status{Kind: StatusIdle})
	}
	return at, err
}

// open opens a session at a place without being held up by it: when ctx is done open returns, late is closed
// when the Open is over, and the session it may still bring is closed. Without a session the place is given up.
func (s *Service) open(ctx context.Context, entry *agentEntry, mode Mode, req Request, at *place, emit func(Event)) (session Session, late chan struct{}, err error) {
	type opened struct {
		session Session
		err     error
	}
	came := make(chan opened, 1)
	s.work.more()
	go func() {
		defer s.work.leave()
		var o opened
		o.err = guard(entry.provider.Agent(), func() (err error) {
			o.session, err = entry.provider.Open(ctx, mode, req)
			return err
		})
		if o.err != nil {
			o.session = nil
		}
		came <- o
	}()
	if o, ok := awaitPlace(ctx, entry.runEnv, emit, came); ok {
		if o.session == nil {
			s.pool.leave(at)
		}
		return o.session, nil, o.err
	}
	late = make(chan struct{})
	s.work.more()
	go func() {
		defer s.work.leave()
		defer close(late)
		o := <-came
		if o.session == nil {
			s.pool.leave(at)
			return
		}
		_ = s.pool.discard(s.pool.lend(entry, mode, req.Conversation, o.session, at))
	}()
	return nil, late, nil
}

// runTurn runs the session's Turn. A provider that does not return though ctx is done is given up after
// the time its contract allows and more.
func (s *Service) runTurn(ctx context.Context, lent *pooled, req Request, w *watch) error {
	leave := s.present.enter(req.Turn, lent)
	defer func() {
		if !leave(s.pool.closeWait) {
			s.pool.spoil(lent)
		}
	}()
	over := make(chan error, 1)
	s.work.more()
	go func() {
		defer s.work.leave()
		over <- guard(lent.agent, func() error {
			lent.session.Turn(ctx, req, w.event)
			return nil
		})
	}()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	patience, stop := context.WithTimeout(context.Background(), s.pool.closeWait)
	defer stop()
	select {
	case err := <-over:
		return err
	case <-patience.Done():
		return Failf(BadOutput, lent.agent, "it did not detach from the turn")
	}
}

// guard turns a panic of a provider into a Failure.
func guard(agent Agent, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Failure{
				Kind: UnknownFailure, Agent: agent, Reason: "ductor has a defect in its part for this agent",
				Detail: Shorten(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()), 4<<10),
			}
		}
	}()
	return f()
}
