package cli

import (
	"context"
	"errors"
	"slices"
	"time"
)

// OpenTurn is a turn that was running when an earlier ductor went.
type OpenTurn struct {
	Turn         TurnID
	Agent        Agent
	Conversation Conversation
	Started      time.Time
}

// Remains is what is left of an OpenTurn.
type Remains string

// The kinds of remains.
const (
	RemainsRun     Remains = "run"     // a run has it: Service.Resume goes on with it
	RemainsNothing Remains = "nothing" // it never reached an agent: Service.Run asks for the first time
	RemainsUnknown Remains = "unknown" // nobody knows what it did, so it must not be asked again by itself
)

// leftTurn is a run that was left, such as one that has an open turn.
type leftTurn struct {
	from Launcher
	run  LeftRun
	at   *place // of its process
}

// Survey looks at what an earlier ductor left, and says what remains of each open turn. Idle sessions are
// taken into the pool while there is room for their processes. Runs of no further use are ended in the background; nothing is started in their
// conversations before they are gone. A process that served several conversations and in which no turn was
// running is of no further use: their sessions are opened again by their ids. Call it once, before the first Run.
func (s *Service) Survey(ctx context.Context, open []OpenTurn) (map[TurnID]Remains, error) {
	remains := map[TurnID]Remains{}
	var rest []leftTurn // what no open turn needs
	var errs []error
	taken := map[closeKey]bool{}
	for _, l := range s.opts.Launchers {
		runs, err := l.Left(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, run := range runs {
			if !s.claim(l, run, open, remains) {
				rest = append(rest, leftTurn{from: l, run: run})
				continue
			}
			taken[closeKey{run.Conversation, run.Agent}] = true
		}
	}
	for _, r := range rest {
		// Two processes of one session would spoil each other's history.
		key := closeKey{r.run.Conversation, r.run.Agent}
		r.at = s.pool.placeFor(r.run)
		if taken[key] || !s.adoptIdle(ctx, r) {
			s.endUseless(r)
			continue
		}
		taken[key] = true
	}
	for _, t := range open {
		if remains[t.Turn] == "" {
			remains[t.Turn] = s.unmarked(t, len(errs) == 0)
		}
	}
	return remains, errors.Join(errs...)
}

// claim keeps a run for the open turns that it has, if any.
func (s *Service) claim(l Launcher, run LeftRun, open []OpenTurn, remains map[TurnID]Remains) (used bool) {
	var at *place
	for _, t := range open {
		if run.Agent == t.Agent && slices.ContainsFunc(run.Marks, func(m Mark) bool { return m.Turn == t.Turn }) {
			if at == nil {
				at = s.pool.placeFor(run)
			} else {
				s.pool.shareLeft(at)
			}
			s.leftMu.Lock()
			s.left[t.Turn] = &leftTurn{from: l, run: run, at: at}
			s.leftMu.Unlock()
			remains[t.Turn], used = RemainsRun, true
		}
	}
	return used
}

// endUseless ends a run that nothing is to be gone on with.
func (s *Service) endUseless(r leftTurn) {
	if r.run.Problem != "" {
		s.opts.Logger.Warn("a run that was left cannot be gone on with; it is ended", "run", r.run.Run, "agent", string(r.run.Agent),
			"conversation", string(r.run.Conversation), "pid", r.run.PID, "why", r.run.Problem)
	}
	s.discardLeft(r)
}

// adoptIdle takes the session of an idle run into the pool.
func (s *Service) adoptIdle(ctx context.Context, r leftTurn) bool {
	run := r.run
	entry := s.agents[run.Agent]
	if entry == nil || entry.mode != Live || run.Mode != Live || !run.Alive || run.Problem != "" || run.Conversation == "" || s.pool.tooMany() {
		return false
	}
	session, err := s.adopt(ctx, entry, run, Request{Conversation: run.Conversation})
	if err != nil {
		s.opts.Logger.Warn("an idle agent cannot be gone on with; it is ended", "run", run.Run, "agent", string(run.Agent), "err", err)
		return false
	}
	if s.pool.keep(run.Agent, run.Conversation, session, r.at) {
		return true
	}
	session.Detach()
	return false
}

// adoptWait is how long it may take to attach to a run.
const adoptWait = 10 * time.Second

func (s *Service) adopt(ctx context.Context, entry *agentEntry, run LeftRun, req Request) (session Session, err error) {
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
	lift := s.pool.bar(left.run.Conversation, left.run.Agent)
	s.pool.giveUp(left.at)
	s.work.more()
	go func() {
		defer s.work.leave()
		defer lift()
		defer s.pool.leaveClosed(left.at)
		ctx, cancel := context.WithTimeout(context.Background(), s.opts.Grace+stopSlack)
		defer cancel()
		if err := left.from.Discard(ctx, left.run.Run); err != nil {
			s.opts.Logger.Error("end a run that was left", "run", left.run.Run, "pid", left.run.PID, "err", err)
		}
	}()
}

// unmarked says what remains of a turn that no run has.
func (s *Service) unmarked(t OpenTurn, complete bool) Remains {
	for _, l := range s.opts.Launchers {
		complete = complete && l.Knows(t.Started)
	}
	if complete && len(s.opts.Launchers) > 0 {
		return RemainsNothing
	}
	return RemainsUnknown
}

// Resume goes on with a turn of which Survey said that a run has it, like Run in the rest. Nothing is asked
// again.
func (s *Service) Resume(ctx context.Context, agent Agent, req Request, emit func(Event)) Result {
	return s.serve(ctx, agent, req, emit, s.resume)
}

func (s *Service) resume(ctx context.Context, entry *agentEntry, req Request, emit func(Event)) Result {
	s.leftMu.Lock()
	left := s.left[req.Turn]
	delete(s.left, req.Turn)
	s.leftMu.Unlock()
	agent := entry.provider.Agent()
	if left == nil {
		return emitted(emit, Result{Err: Failf(UnknownFailure, agent, "nothing is left of this turn")})
	}
	a := s.attemptLeft(ctx, entry, left, req, emit)
	s.settle(ctx, a, func() { emit(a.result) })
	return a.result
}

func (s *Service) attemptLeft(ctx context.Context, entry *agentEntry, left *leftTurn, req Request, emit func(Event)) attempt {
	agent := entry.provider.Agent()
	if left.run.Problem != "" {
		s.opts.Logger.Warn("a turn cannot be gone on with; its run is ended", "run", left.run.Run, "agent", string(agent),
			"turn", string(req.Turn), "pid", left.run.PID, "why", left.run.Problem)
		s.discardLeft(*left)
		return attempt{result: Result{Err: Failf(UnknownFailure, agent, "it cannot be gone on with and was ended, because %s", left.run.Problem)}}
	}
	session, err := s.adopt(ctx, entry, left.run, req)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), ErrDetached):
		s.pool.leave(left.at)
		return attempt{result: Result{Detached: true}}
	case err != nil:
		s.discardLeft(*left)
		return attempt{result: Result{Err: AsFailure(agent, err)}}
	}
	lent := s.pool.lend(agent, left.run.Mode, req.Conversation, session, left.at)
	w := &watch{agent: agent, emit: emit}
	err = s.runTurn(ctx, lent, req, w)
	r, ok := w.close()
	return attempt{result: judge(ctx, w, r, ok, err), shown: w.shown, lent: lent}
}

// Settled says that the outcome of a turn is recorded, so that nothing need be kept to go on with it.
func (s *Service) Settled(turn TurnID) {
	for _, l := range s.opts.Launchers {
		l.Settled(turn)
	}
}
