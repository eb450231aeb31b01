package service

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"ductor/cli"
)

// surveyWait is how long a sandbox may take to say what was left in it, and to have that taken up.
const surveyWait = 10 * time.Second

// surveyAgain is between two looks at a sandbox that could not say.
const surveyAgain = 30 * time.Second

// sighting is what one launcher says was left.
type sighting struct {
	runEnv *runEnv
	from   cli.Launcher
	runs   []cli.LeftRun
	err    error
}

// Survey looks at what the previous process of ductor left, and says what remains of each open turn. Sessions that work in
// the background are taken into the pool. Other runs are ended in the background; nothing is started in their conversations
// before they are gone. Call it once, before the first Run.
//
// All places are looked at at the same time, and a sandbox has ten seconds. What one holds that cannot say is
// ended as soon as it can; until then no turn starts in there. The error tells of this host only.
func (s *Service) Survey(ctx context.Context, open []cli.OpenTurn) (map[cli.TurnID]cli.Remains, error) {
	remains := map[cli.TurnID]cli.Remains{}
	began := time.Now()
	var errs []error
	rest := map[*runEnv][]leftTurn{} // what no open turn needs
	unseen := map[*runEnv]bool{}
	taken := map[closeKey]bool{}
	open, given := apart(open)
	for _, t := range open { // which opens the places that conversations have for themselves
		s.runEnvs.get(t.Sandbox)
	}
	for _, sight := range s.sightings(ctx) {
		if sight.err != nil {
			unseen[sight.runEnv] = true
			s.missed(sight.runEnv, sight.err)
			if sight.runEnv.sandbox == "" {
				errs = append(errs, sight.err)
			}
			continue
		}
		for _, run := range sight.runs {
			left := leftTurn{runEnv: sight.runEnv, from: sight.from, run: run}
			if !s.claim(left, open, remains) {
				if slices.ContainsFunc(given, left.belongsTo) {
					left.run.Problem = "its turn was given up"
				}
				rest[sight.runEnv] = append(rest[sight.runEnv], left)
				continue
			}
			taken[left.closeKey()] = true
		}
	}
	var all sync.WaitGroup
	for at, runs := range rest {
		all.Go(func() { s.takeUp(ctx, at, runs, maps.Clone(taken), began.Add(surveyWait)) })
	}
	all.Wait()
	s.unmarked(open, unseen, remains)
	return remains, errors.Join(errs...)
}

// apart tells turns that may go on from those that were given up.
func apart(all []cli.OpenTurn) (open, given []cli.OpenTurn) {
	for _, t := range all {
		if t.GivenUp {
			given = append(given, t)
		} else {
			open = append(open, t)
		}
	}
	return open, given
}

// sightings looks at all places at the same time.
func (s *Service) sightings(ctx context.Context) []*sighting {
	var list []*sighting
	var all sync.WaitGroup
	for _, at := range s.runEnvs.list() {
		for _, l := range at.launchers {
			one := &sighting{runEnv: at, from: l}
			list = append(list, one)
			all.Go(func() { one.runs, one.err = s.sight(ctx, at, l) })
		}
	}
	all.Wait()
	return list
}

// sight asks a launcher what was left. A sandbox that does not say in time is given up.
func (s *Service) sight(ctx context.Context, at *runEnv, l cli.Launcher) ([]cli.LeftRun, error) {
	if at.sandbox == "" {
		return l.Left(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, surveyWait)
	defer cancel()
	type answer struct {
		runs []cli.LeftRun
		err  error
	}
	came := make(chan answer, 1)
	s.work.Go(func() {
		var a answer
		a.runs, a.err = l.Left(ctx)
		came <- a
	})
	a, ok := awaitPlace(ctx, at, nil, came)
	if !ok {
		return nil, context.Cause(ctx)
	}
	return a.runs, a.err
}

// claim keeps a run for the open turns that it has, if any. Of others it knows nothing then. A run has no turn that ran
// elsewhere, whatever its marks say: an agent in a sandbox may write them.
func (s *Service) claim(left leftTurn, open []cli.OpenTurn, remains map[cli.TurnID]cli.Remains) (used bool) {
	for _, t := range open {
		if left.belongsTo(t) {
			left.at = s.pool.left(left.closeKey(), left.run)
			mine := left
			mine.forgetRecorded(open)
			s.leftMu.Lock()
			s.left[t.Turn] = &mine
			s.spareLocked(left.run.Run, 1)
			s.leftMu.Unlock()
			remains[t.Turn], used = cli.RemainsRun, true
		}
	}
	return used
}

// takeUp takes sessions of a place that work in the background into the pool and ends the other runs. A sandbox has time
// until then.
func (s *Service) takeUp(ctx context.Context, at *runEnv, runs []leftTurn, taken map[closeKey]bool, until time.Time) {
	for _, left := range runs {
		what := left.closeKey() // two processes of one session would spoil each other's history
		left.at = s.pool.left(what, left.run)
		late := at.sandbox != "" && time.Now().After(until)
		if taken[what] || late || !s.adoptIdle(ctx, left) {
			s.endUseless(left)
			continue
		}
		taken[what] = true
	}
}

// liveEntry is the agent of a live run that can be attached to; nil if it is none, or is not run live any more.
func (s *Service) liveEntry(left leftTurn) *agentEntry {
	run := left.run
	entry := left.runEnv.agents[run.Agent]
	if alone := left.runEnv.sandbox.Alone(); alone != "" && run.Conversation != "" && run.Conversation != alone {
		return nil // an agent made it, to be another conversation's
	}
	if entry == nil || s.modeSoFar(entry) != cli.Live || run.Mode != cli.Live || !run.Alive || run.Problem != "" {
		return nil
	}
	return entry
}

// adoptIdle takes the session of a run that works in the background into the pool. Its agent is not asked how it is to be run: if not like
// this any more, the next turn opens another session.
func (s *Service) adoptIdle(ctx context.Context, left leftTurn) bool {
	run := left.run
	entry := s.liveEntry(left)
	if entry == nil || run.Conversation == "" || !run.Background() {
		return false
	}
	session, err := s.adopt(ctx, entry, run, cli.Request{Conversation: run.Conversation, Sandbox: left.runEnv.sandbox})
	if err != nil {
		s.opts.Logger.Warn("an agent that works in the background cannot be attached to; it is ended", "run", run.Run, "agent", string(run.Agent), "err", err)
		return false
	}
	if s.pool.keep(left.at, session) {
		return true
	}
	session.Detach()
	return false
}

// unmarked says what remains of the turns that no run has. Each is asked for in its own place only: what another
// one forgot, or cannot say, is nothing to it.
func (s *Service) unmarked(open []cli.OpenTurn, unseen map[*runEnv]bool, remains map[cli.TurnID]cli.Remains) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, t := range open {
		mu.Lock()
		known := remains[t.Turn] != ""
		mu.Unlock()
		if known {
			continue
		}
		all.Go(func() {
			at, what := s.runEnvs.get(t.Sandbox), cli.RemainsUnknown
			if at != nil && !unseen[at] && at.knows(t.Started) {
				what = cli.RemainsNothing
			}
			mu.Lock()
			defer mu.Unlock()
			remains[t.Turn] = what
		})
	}
	all.Wait()
}

// knows says whether no run of a place that was started after since can have been forgotten.
func (at *runEnv) knows(since time.Time) bool {
	for _, l := range at.launchers {
		if !l.Knows(since) {
			return false
		}
	}
	return len(at.launchers) > 0
}

// missed is for a sandbox of which it is unknown what was left there, or in which something could not be ended:
// whatever it was, its turns are told of as ended.
func (s *Service) missed(at *runEnv, err error) {
	if at.sandbox == "" {
		return
	}
	at.look <- struct{}{}
	was := at.unseen
	at.unseen = true
	<-at.look
	if was {
		return
	}
	s.opts.Logger.Warn("what was left in a sandbox cannot be ended yet; it is as soon as that can be", "sandbox", string(at.sandbox), "err", err)
	s.work.spawn(func() {
		again := time.NewTicker(surveyAgain)
		defer again.Stop()
		for s.base.Err() == nil {
			select {
			case <-s.base.Done():
				return
			case <-again.C:
			}
			if s.sighted(s.base, at) == nil {
				return
			}
		}
	})
}

// sighted sees to it that what was left in a place is known. The error says that it cannot be.
func (s *Service) sighted(ctx context.Context, at *runEnv) error {
	select {
	case at.look <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-at.look }()
	if !at.unseen {
		return nil
	}
	spared := s.sparedNow()
	for _, l := range at.launchers {
		runs, err := s.sight(ctx, at, l)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if spared[run.Run] > 0 {
				continue
			}
			s.opts.Logger.Warn("an agent was left in a sandbox; it is ended", "sandbox", string(at.sandbox), "run", run.Run, "agent", string(run.Agent))
			left := leftTurn{runEnv: at, from: l, run: run}
			left.at = s.pool.left(left.closeKey(), run)
			s.endUseless(left)
		}
	}
	at.unseen = false
	return nil
}
