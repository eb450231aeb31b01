package changes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/git"
	"ductor/orchestrator"
	"ductor/orchestrator/fence"
)

// Time limits.
const (
	holdMost = 2 * time.Second // default of Options.Hold
	// lookMost limits the time for the snapshot before a turn. The limit is high, because even a snapshot that is too
	// late for this turn makes the next snapshot faster.
	lookMost  = 2 * time.Minute
	afterMost = 20 * time.Second // time limit for the snapshot after a turn
)

type watch struct {
	s       *Service
	turn    orchestrator.Turn
	began   time.Time
	at      git.Place
	resumed bool // the turn began before a restart of ductor

	mu     sync.Mutex
	before before
	writes writes
	// startOrder and endOrder are values of Service.order at the start and at the end of the turn. Comparing them shows
	// whether two turns ran at the same time. While the turn runs, endOrder is 0.
	startOrder int64
	endOrder   int64
	// shared is the conversation of another turn that wrote to the same repository at the same time, or nil.
	shared *orchestrator.ConversationID
}

type before struct {
	stop  context.CancelFunc
	ready chan struct{} // closed when the snapshot is complete or has failed
	repos []*git.Repo
	trees []orchestrator.SnapshotTree
	why   orchestrator.NoUndo // why a user cannot undo the turn; empty if undo is possible
}

func (b *before) isReady() bool {
	select {
	case <-b.ready:
		return true
	default:
		return false
	}
}

// none is the TurnWatch of a turn outside of any repository. It does nothing.
type none struct{}

func (none) Observe(cli.Event)                               {}
func (none) End() func(context.Context) orchestrator.Changed { return nil }
func (none) Leave()                                          {}

func (s *Service) Watch(t orchestrator.Turn, dir string, resumed bool) orchestrator.TurnWatch {
	if t.Sandbox == "" && !inRepository(dir) {
		return none{}
	}
	ctx, cancel := context.WithTimeout(s.life, lookMost)
	w := &watch{
		s: s, turn: t, began: s.opts.Now(), at: git.Place{In: t.Sandbox, Dir: dir}, resumed: resumed,
		before: before{stop: cancel, ready: make(chan struct{})}, writes: newWrites(), startOrder: s.order.Add(1),
	}
	s.mu.Lock()
	s.watches[t.ID] = w
	s.mu.Unlock()
	s.wg.Go(func() {
		defer close(w.before.ready)
		w.takeBefore(ctx)
	})
	return w
}

// dropOthers keeps only the repositories in kept, with their current trees: repeatSnapshots may have replaced the trees
// for which takeBefore created the refs.
func (b *before) dropOthers(kept []*git.Repo) {
	var repos []*git.Repo
	var trees []orchestrator.SnapshotTree
	for i, tree := range b.trees {
		if slices.Contains(kept, b.repos[i]) {
			repos, trees = append(repos, b.repos[i]), append(trees, tree)
		}
	}
	b.repos, b.trees = repos, trees
}

// takeBefore takes the snapshot before the turn. If the turn began before a restart of ductor, it loads the snapshot
// that the previous process took.
func (w *watch) takeBefore(ctx context.Context) {
	repos, trees, err := w.s.treesOf(ctx, w.at, func(ctx context.Context, r *git.Repo) (string, error) {
		if w.resumed {
			return r.Kept(ctx, beforeRef(w.turn.ID))
		}
		return r.Snapshot(ctx, git.BeforeTurn)
	})
	w.mu.Lock()
	w.writes.snapshotDone = true
	switch {
	case errors.Is(err, orchestrator.ErrNoRepository), errors.Is(err, orchestrator.ErrOutsideRoot):
		repos = nil
	case errors.Is(err, git.ErrTooLarge):
		w.before.why = orchestrator.NoUndoLarge
	case err != nil:
		w.s.opts.Log.Warn("take the snapshot before a turn", "turn", w.turn.ID, "err", err)
		w.before.why = orchestrator.NoUndoFailed
	case w.resumed && trees[0].Before == "":
		w.before.why = orchestrator.NoUndoLate
	}
	// After a restart, ductor replays the events of the turn. The replayed tools ran after the previous process had
	// taken the snapshot, so remove them from early.
	if w.resumed {
		clear(w.writes.early)
	}
	w.before.repos, w.before.trees = repos, trees
	keep := w.before.why == "" && !w.resumed
	w.mu.Unlock()
	if !keep {
		return
	}
	kept, _, err := keepTrees(ctx, repos, trees, beforeRef(w.turn.ID))
	if err != nil {
		w.s.opts.Log.Warn("store a snapshot", "turn", w.turn.ID, "err", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before.dropOthers(kept)
}

// keepTrees creates a ref for each tree. It returns the repositories and trees, except those in repositories to which
// Git must not write. If Git must not write to repos[0], keepTrees creates no refs and returns nothing.
func keepTrees(ctx context.Context, repos []*git.Repo, trees []orchestrator.SnapshotTree, ref string) (kept []*git.Repo,
	of []orchestrator.SnapshotTree, err error) {
	for i, r := range repos {
		keepErr := r.Keep(ctx, ref, trees[i].Before)
		if errors.Is(keepErr, orchestrator.ErrOutsideRoot) {
			if i == 0 {
				return nil, nil, nil
			}
			continue
		}
		err = errors.Join(err, keepErr)
		kept, of = append(kept, r), append(of, trees[i])
	}
	return kept, of, err
}

func beforeRef(id cli.TurnID) string { return "turns/" + string(id) + "/before" }
func afterRef(id cli.TurnID) string  { return "turns/" + string(id) + "/after" }

func (w *watch) Observe(ev cli.Event) {
	switch ev.(type) {
	case cli.ToolStarted, cli.ToolChanged, cli.ToolEnded, cli.FileChanged, cli.ApprovalAsked:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes.observe(ev)
	default: // ignore other events before taking the lock
	}
}

func (s *Service) AwaitSnapshot(ctx context.Context, turn cli.TurnID, id cli.ApprovalID) {
	s.mu.Lock()
	w := s.watches[turn]
	s.mu.Unlock()
	if w == nil {
		return
	}
	defer w.answered(id)
	late := time.NewTimer(max(s.opts.Hold-s.opts.Now().Sub(w.began), 0))
	defer late.Stop()
	select {
	case <-w.before.ready:
	case <-ctx.Done():
	case <-late.C:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes.tooEarly() // the caller allows the request now, without a complete snapshot
	}
}

func (s *Service) SnapshotTaken(turn cli.TurnID) bool {
	s.mu.Lock()
	w := s.watches[turn]
	s.mu.Unlock()
	return w == nil || w.before.isReady()
}

// answered records that the agent has got the decision on a request. If the request is for a write, the turn may have
// written files from this moment on.
func (w *watch) answered(id cli.ApprovalID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes.wrote = w.writes.wrote || w.writes.asks[id]
}

func (w *watch) Leave() {
	w.before.stop()
	<-w.before.ready
	w.s.forget(w)
}

func (w *watch) End() func(context.Context) orchestrator.Changed {
	w.mu.Lock()
	w.endOrder = w.s.order.Add(1)
	wrote := w.writes.possible()
	if wrote {
		w.writes.tooEarly()
	}
	w.mu.Unlock()
	if !wrote {
		w.s.forget(w)
		w.s.wg.Go(func() { <-w.before.ready; w.before.stop(); w.drop() })
		return nil
	}
	w.s.mix(w)
	return w.changed
}

// changed returns the changes of the turn after it has ended.
func (w *watch) changed(ctx context.Context) orchestrator.Changed {
	defer w.s.forget(w)
	ctx, cancel := context.WithTimeout(ctx, afterMost)
	defer cancel()
	select {
	case <-w.before.ready:
	case <-ctx.Done(): // do not cancel the snapshot: once complete, it makes the next snapshot faster
		w.s.wg.Go(func() { <-w.before.ready; w.before.stop(); w.drop() })
		return orchestrator.Changed{NoUndo: orchestrator.NoUndoLate}
	}
	w.before.stop()
	changed, err := w.compare(ctx)
	if err != nil {
		w.s.opts.Log.Warn("compute the changes of a turn", "turn", w.turn.ID, "err", err)
		changed.NoUndo = orchestrator.NoUndoFailed
	}
	if changed.Files == 0 || changed.NoUndo != "" {
		w.s.wg.Go(w.drop)
	}
	return changed
}

func (w *watch) drop() {
	ctx, cancel := context.WithTimeout(w.s.life, afterMost)
	defer cancel()
	for _, r := range w.before.repos {
		if err := r.Forget(ctx, beforeRef(w.turn.ID), afterRef(w.turn.ID)); err != nil {
			w.s.opts.Log.Warn("delete a snapshot", "turn", w.turn.ID, "err", err)
		}
	}
}

// compare takes the snapshot after the turn, compares it with the snapshot before the turn, and stores the changes.
func (w *watch) compare(ctx context.Context) (c orchestrator.Changed, err error) {
	if why := w.reason(); len(w.before.repos) == 0 || why != "" {
		if !w.touched(ctx) {
			why = ""
		}
		return orchestrator.Changed{NoUndo: why}, nil
	}
	for i, r := range w.before.repos {
		tree := &w.before.trees[i]
		if tree.After, err = r.Snapshot(ctx, git.AfterTurn); err != nil {
			return c, err
		}
		changes, err := r.Changes(ctx, tree.Before, tree.After)
		if err != nil {
			return c, err
		}
		for _, one := range restorable(changes) {
			c.Files++
			c.Added, c.Removed = c.Added+max(one.Added, 0), c.Removed+max(one.Removed, 0)
		}
	}
	w.s.mix(w)
	w.mu.Lock()
	if w.shared != nil && c.Files > 0 {
		c.NoUndo, c.With = orchestrator.NoUndoShared, *w.shared
	}
	w.mu.Unlock()
	if c.Files == 0 || c.NoUndo != "" {
		return c, nil
	}
	for i, r := range w.before.repos {
		if err := r.Keep(ctx, afterRef(w.turn.ID), w.before.trees[i].After); err != nil {
			return c, err
		}
	}
	if c.Ignored, err = w.before.repos[0].Ignores(ctx); err != nil {
		return c, err
	}
	t := w.turn
	return c, w.s.opts.Store.SaveChanges(ctx, orchestrator.TurnChanges{
		ID: string(t.ID), Conversation: t.Prompt.Conversation, Session: t.Session,
		Title: cli.Shorten(strings.Join(strings.Fields(fence.Words(t.Prompt.Text)), " "), 200),
		At:    w.s.opts.Now(), Sandbox: t.Sandbox, Snapshot: orchestrator.Snapshot{Trees: w.before.trees}, Changed: c,
	})
}

// reason returns why the snapshot does not show the state before the turn, or "" if it does.
func (w *watch) reason() orchestrator.NoUndo {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.before.why == "" && len(w.writes.early) > 0 {
		return orchestrator.NoUndoLate
	}
	return w.before.why
}

// clockSlack is an upper limit for the error of a file system's clock.
const clockSlack = 50 * time.Millisecond

// touched reports whether a file may have been written after the turn started.
func (w *watch) touched(ctx context.Context) bool {
	since := w.began
	if w.resumed {
		since = w.turn.Started
	}
	for _, r := range w.before.repos {
		if touched, err := r.Touched(ctx, since.Add(-clockSlack)); err != nil || touched {
			return true
		}
	}
	return len(w.before.repos) == 0
}

// restorable leaves out changes of the entries for nested repositories. Each nested repository has a snapshot of its
// own.
func restorable(all []git.Change) (some []git.Change) {
	for _, c := range all {
		if !c.Old.Repository() && !c.New.Repository() {
			some = append(some, c)
		}
	}
	return some
}
