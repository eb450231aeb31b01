package changes

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/git"
	"ductor/orchestrator"
)

// How long is waited.
const (
	holdMost  = 2 * time.Second  // that a write waits for the look at the files before it, if Options say nothing else
	lookMost  = 2 * time.Minute  // for that look: one that is late makes the next one faster
	afterMost = 20 * time.Second // for the look at the files after a turn
)

// watch sees what one turn changes.
type watch struct {
	s     *Service
	turn  orchestrator.Turn
	began time.Time
	end   context.CancelFunc
	ready chan struct{} // closed once the files have been looked at, or could not be

	mu     sync.Mutex
	open   map[cli.ToolID]bool // tools that may write, began before that, and did not ask first
	wrote  bool                // a tool that may write was used
	looked bool
	seen
}

// seen is what a watch knows of the files before the turn.
type seen struct {
	repos []*git.Repo
	trees []orchestrator.SnapshotTree
	why   orchestrator.NoUndo // there is no undo
}

// none is the watch of a turn that works in no repository.
type none struct{}

func (none) Take(cli.Event)                               {}
func (none) End(context.Context) (c orchestrator.Changed) { return c }
func (none) Leave()                                       {}

func (s *Service) Watch(t orchestrator.Turn, dir string, goesOn bool) orchestrator.TurnWatch {
	if t.Sandbox == "" && !inRepository(dir) {
		return none{}
	}
	ctx, cancel := context.WithTimeout(s.life, lookMost)
	w := &watch{s: s, turn: t, began: s.opts.Now(), end: cancel, ready: make(chan struct{}), open: map[cli.ToolID]bool{}}
	s.mu.Lock()
	s.watches[t.ID] = w
	s.mu.Unlock()
	s.wg.Go(func() {
		defer close(w.ready)
		w.begin(ctx, git.Place{In: t.Sandbox, Dir: dir}, goesOn)
	})
	return w
}

// begin looks at the files, or for what the previous process saw.
func (w *watch) begin(ctx context.Context, at git.Place, goesOn bool) {
	repos, trees, err := w.s.look(ctx, at, func(ctx context.Context, r *git.Repo) (string, error) {
		if goesOn {
			return r.Kept(ctx, beforeRef(w.turn.ID))
		}
		return r.Snapshot(ctx, git.BeforeTurn)
	})
	w.mu.Lock()
	w.looked = true
	switch {
	case errors.Is(err, orchestrator.ErrNoRepository), errors.Is(err, orchestrator.ErrOutsideRoot):
		repos = nil
	case errors.Is(err, git.ErrTooLarge):
		w.why = orchestrator.NoUndoLarge
	case err != nil:
		w.s.opts.Log.Warn("look at the files before a turn", "turn", w.turn.ID, "err", err)
		w.why = orchestrator.NoUndoFailed
	case goesOn && trees[0].Before == "":
		w.why = orchestrator.NoUndoLate
	}
	if goesOn { // the previous process looked before them
		clear(w.open)
	}
	w.repos, w.trees = repos, trees
	keep := w.why == "" && !goesOn
	w.mu.Unlock()
	w.s.join(w)
	for i, r := range repos {
		if keep {
			if err := r.Keep(ctx, beforeRef(w.turn.ID), trees[i].Before); err != nil {
				w.s.opts.Log.Warn("keep a snapshot", "turn", w.turn.ID, "err", err)
			}
		}
	}
}

func beforeRef(id cli.TurnID) string { return "turns/" + string(id) + "/before" }
func afterRef(id cli.TurnID) string  { return "turns/" + string(id) + "/after" }

func (w *watch) Take(ev cli.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch ev := ev.(type) {
	case cli.ToolStarted:
		if onlyReads(ev.Name) {
			return
		}
		if w.wrote = true; !w.looked {
			w.open[ev.ID] = true
		}
	case cli.FileChanged:
		if w.wrote = true; !w.looked {
			w.open["\x00"] = true
		}
	case cli.ApprovalAsked: // the tool waits for the answer, and that for the look at the files
		if delete(w.open, ev.Started); ev.Started == "" && len(w.open) == 1 && !w.looked {
			clear(w.open)
		}
	}
}

// onlyReads says whether a tool is known to change no file.
func onlyReads(tool string) bool {
	switch strings.ToLower(tool) {
	case "read", "grep", "glob", "ls", "view", "search", "websearch", "webfetch", "todowrite", "read_file", "read_many_files", "list_directory",
		"search_file_content", "google_web_search", "web_fetch", "web_search", "think", "report_intent":
		return true
	}
	return false
}

func (s *Service) Hold(ctx context.Context, turn cli.TurnID) {
	s.mu.Lock()
	w := s.watches[turn]
	s.mu.Unlock()
	if w == nil {
		return
	}
	late := time.NewTimer(max(s.opts.Hold-s.opts.Now().Sub(w.began), 0))
	defer late.Stop()
	select {
	case <-w.ready:
	case <-ctx.Done():
	case <-late.C:
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.looked {
			w.open["\x00"] = true // the answer goes out now
		}
	}
}

func (s *Service) Looked(turn cli.TurnID) bool {
	s.mu.Lock()
	w := s.watches[turn]
	s.mu.Unlock()
	if w == nil {
		return true
	}
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

func (w *watch) Leave() {
	w.end()
	<-w.ready
	w.s.forget(w)
}

func (w *watch) End(ctx context.Context) orchestrator.Changed {
	defer w.s.forget(w)
	w.mu.Lock()
	if w.wrote && !w.looked {
		w.open["\x00"] = true
	}
	wrote := w.wrote
	w.mu.Unlock()
	if !wrote {
		w.s.wg.Go(func() { <-w.ready; w.end(); w.drop() })
		return orchestrator.Changed{}
	}
	if !w.awaitLook() { // it goes on, so that the next one is faster
		w.s.wg.Go(func() { <-w.ready; w.end(); w.drop() })
		return orchestrator.Changed{NoUndo: orchestrator.NoUndoLate}
	}
	w.end()
	ctx, cancel := context.WithTimeout(ctx, afterMost)
	defer cancel()
	changed, err := w.compare(ctx)
	if err != nil {
		w.s.opts.Log.Warn("see what a turn changed", "turn", w.turn.ID, "err", err)
		changed.NoUndo = orchestrator.NoUndoFailed
	}
	if changed.Files == 0 || changed.NoUndo != "" {
		w.s.wg.Go(w.drop)
	}
	return changed
}

// awaitLook waits for the look at the files before the turn, for as long as a write may wait for it since the turn began. It says
// whether that is over, also where the time had passed before: of a long turn it had.
func (w *watch) awaitLook() bool {
	late := time.NewTimer(max(w.s.opts.Hold-w.s.opts.Now().Sub(w.began), 0))
	defer late.Stop()
	select {
	case <-w.ready:
	case <-late.C:
	}
	w.mu.Lock()
	looked := w.looked
	w.mu.Unlock()
	if looked { // it is over, and is being stored
		<-w.ready
	}
	return looked
}

// drop forgets what was seen before the turn.
func (w *watch) drop() {
	ctx, cancel := context.WithTimeout(w.s.life, afterMost)
	defer cancel()
	for _, r := range w.repos {
		if err := r.Forget(ctx, beforeRef(w.turn.ID), afterRef(w.turn.ID)); err != nil {
			w.s.opts.Log.Warn("forget a snapshot", "turn", w.turn.ID, "err", err)
		}
	}
}

// compare looks at the files after the turn, and stores what changed.
func (w *watch) compare(ctx context.Context) (c orchestrator.Changed, err error) {
	if why := w.reason(); len(w.repos) == 0 || why != "" && why != orchestrator.NoUndoShared {
		return orchestrator.Changed{NoUndo: why}, nil
	}
	for i, r := range w.repos {
		tree := &w.trees[i]
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
	if c.Files == 0 {
		return c, nil
	}
	if c.NoUndo = w.reason(); c.NoUndo != "" {
		return c, nil
	}
	for i, r := range w.repos {
		if err := r.Keep(ctx, afterRef(w.turn.ID), w.trees[i].After); err != nil {
			return c, err
		}
	}
	if c.Ignored, err = w.repos[0].Ignores(ctx); err != nil {
		return c, err
	}
	t := w.turn
	return c, w.s.opts.Store.SaveChanges(ctx, orchestrator.TurnChanges{
		ID: string(t.ID), Conversation: t.Prompt.Conversation, Session: t.Session, Title: cli.Shorten(strings.Join(strings.Fields(t.Prompt.Text), " "), 200),
		At: w.s.opts.Now(), Sandbox: t.Sandbox, Snapshot: orchestrator.Snapshot{Trees: w.trees}, Changed: c,
	})
}

func (w *watch) reason() orchestrator.NoUndo {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == "" && len(w.open) > 0 {
		return orchestrator.NoUndoLate
	}
	return w.why
}

// restorable are the changes but those of repositories within, which have trees of their own.
func restorable(all []git.Change) (some []git.Change) {
	for _, c := range all {
		if !c.Old.Repository() && !c.New.Repository() {
			some = append(some, c)
		}
	}
	return some
}
