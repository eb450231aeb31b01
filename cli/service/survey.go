package service

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"ductor/cli"
	"ductor/lang"
)

// surveyWait is the time limit for a sandbox to list the runs of the previous process of ductor. The time limit for
// attaching to these runs is the same.
const surveyWait = 10 * time.Second

// If a sandbox did not list its runs, ductor asks it again after surveyAgain.
const surveyAgain = 30 * time.Second

// sighting is the answer of one launcher: the runs of the previous process of ductor, or an error.
type sighting struct {
	runEnv *runEnv
	from   cli.Launcher
	runs   []cli.LeftRun
	err    error
}

// Survey looks for the runs of the previous process of ductor. It reports for each open turn whether Resume can
// continue it. Call it once, before the first Run.
//
// Survey adds sessions with background work to the pool. It ends all runs without background work and without an open
// turn. It does not wait for the end of these runs, but their conversations start no turn until then.
//
// Survey queries all environments at the same time. If a sandbox does not answer within surveyWait, ductor ends the
// sandbox's runs later, and starts no turn in the sandbox until then. The returned error concerns only this host.
func (s *Service) Survey(ctx context.Context, openTurns []cli.OpenTurn) (map[cli.TurnID]cli.Remains, error) {
	remains := map[cli.TurnID]cli.Remains{}
	began := time.Now()
	var errs []error
	rest := map[*runEnv][]leftTurn{} // runs without a turn that Resume can continue
	taken := map[closeKey]bool{}
	for _, t := range openTurns {
		s.runEnvs.get(t.Sandbox) // creates the sandbox if it belongs to one conversation
	}
	for _, sight := range s.sightings(ctx) {
		if sight.err != nil {
			s.missed(sight.runEnv, sight.err)
			if sight.runEnv.sandbox == "" {
				errs = append(errs, sight.err)
			}
			continue
		}
		for _, run := range sight.runs {
			run.Marks = nil // ignore the launcher's marks; claim adds the marks that ductor has stored
			left := leftTurn{runEnv: sight.runEnv, from: sight.from, run: run}
			if s.claim(&left, openTurns, remains) {
				taken[left.closeKey()] = true
			} else {
				rest[sight.runEnv] = append(rest[sight.runEnv], left)
			}
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var working []cli.RunID // runs with background work to which ductor has attached
	for at, runs := range rest {
		had := maps.Clone(taken)
		all.Go(func() {
			adopted := s.takeUp(ctx, at, runs, had, began.Add(surveyWait))
			mu.Lock()
			defer mu.Unlock()
			working = append(working, adopted...)
		})
	}
	all.Wait()
	for _, t := range openTurns {
		switch {
		case t.Background && slices.Contains(working, t.Start.Run):
			remains[t.Turn] = cli.RemainsRun
		case t.GivenUp, t.Background, remains[t.Turn] != "":
		default:
			remains[t.Turn] = cli.RemainsUnknown
		}
	}
	return remains, errors.Join(errs...)
}

// sightings asks the launchers of all environments, at the same time, for the runs of the previous process of ductor.
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

// sight lists the runs of the previous process that a launcher knows. It waits at most surveyWait for a sandbox.
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
	a, ok := awaitPlace(ctx, at, lang.Printer{}, nil, beside(s.work, func() (a answer) {
		a.runs, a.err = l.Left(ctx)
		return a
	}))
	if !ok {
		return nil, context.Cause(ctx)
	}
	return a.runs, a.err
}

// claim connects a run with the open turns that were running in it, so that Resume can continue them. It returns false
// if Resume can continue no turn of the run.
func (s *Service) claim(left *leftTurn, openTurns []cli.OpenTurn, remains map[cli.TurnID]cli.Remains) (used bool) {
	var goOn []cli.TurnID
	for _, t := range openTurns {
		switch {
		case !left.has(t):
		case t.GivenUp:
			left.run.Problem = "its turn was given up"
		default:
			left.account = t.Account
			left.run.Marks = append(left.run.Marks, mark(t))
			if !t.Background {
				goOn = append(goOn, t.Turn)
			}
		}
	}
	if len(goOn) == 0 {
		return false
	}
	left.run.Marks = slices.DeleteFunc(left.run.Marks, func(m cli.Mark) bool { return !m.OfTurn() })
	for _, turn := range goOn {
		mine := *left
		mine.at = s.pool.left(mine)
		s.leftMu.Lock()
		s.left[turn] = &mine
		s.countAttachingLocked(left.run.Run, 1)
		s.leftMu.Unlock()
		remains[turn] = cli.RemainsRun
	}
	return true
}

// takeUp adds an environment's sessions with background work to the pool, and ends the other runs. For a sandbox, it
// attaches to runs only before the deadline. inUse contains the sessions that already have a run.
func (s *Service) takeUp(ctx context.Context, at *runEnv, runs []leftTurn, inUse map[closeKey]bool,
	deadline time.Time) (adopted []cli.RunID) {
	for _, left := range runs {
		what := left.closeKey()
		left.at = s.pool.left(left)
		late := at.sandbox != "" && time.Now().After(deadline)
		if inUse[what] || late || !s.adoptIdle(ctx, left) {
			s.endUseless(left)
			continue
		}
		inUse[what] = true
		adopted = append(adopted, left.run.Run)
	}
	return adopted
}

// liveEntry returns the agent of a run if ductor can attach to the run and its process can serve more turns. Otherwise
// it returns nil.
func (s *Service) liveEntry(left leftTurn) *agentEntry {
	run := left.run
	entry := left.entry()
	if alone := left.runEnv.sandbox.Alone(); alone != "" && run.Conversation != "" && run.Conversation != alone {
		return nil // an agent in the sandbox forged a run of another conversation
	}
	if entry == nil || s.modeSoFar(entry) != cli.Live || run.Mode != cli.Live || !run.Alive || run.Problem != "" {
		return nil
	}
	return entry
}

// adoptIdle attaches to a run with background work, and adds its session to the pool. It does not ask the agent for its
// modes. If the agent's mode has changed, the next turn opens another session.
func (s *Service) adoptIdle(ctx context.Context, left leftTurn) bool {
	run := left.run
	entry := s.liveEntry(left)
	if entry == nil || run.Conversation == "" || !run.Background() {
		return false
	}
	session, err := s.adopt(ctx, entry, run, cli.Request{Conversation: run.Conversation, Sandbox: left.runEnv.sandbox})
	if err != nil {
		s.opts.Logger.Warn("an agent that works in the background cannot be attached to; it is ended", "run", run.Run,
			"agent", string(run.Agent), "err", err)
		return false
	}
	if s.pool.keep(left.at, session) {
		return true
	}
	session.Detach()
	return false
}

// missed is called if ductor could not list or end the previous process's runs in a sandbox. It tries again in the
// background until the runs have ended. This is necessary because the turns of these runs already count as ended.
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
	s.opts.Logger.Warn("cannot end the runs left in a sandbox, will retry", "sandbox", string(at.sandbox), "err", err)
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

// sighted lists and ends the previous process's runs in an environment, unless that was already done. It returns an
// error if it fails.
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
	attaching := s.attachingNow()
	for _, l := range at.launchers {
		runs, err := s.sight(ctx, at, l)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if attaching[run.Run] > 0 {
				continue
			}
			s.opts.Logger.Warn("an agent was left in a sandbox; it is ended", "sandbox", string(at.sandbox),
				"run", run.Run, "agent", string(run.Agent))
			left := leftTurn{runEnv: at, from: l, run: run}
			left.at = s.pool.left(left)
			s.endUseless(left)
		}
	}
	at.unseen = false
	return nil
}
