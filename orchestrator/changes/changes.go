package changes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/git"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// Engine runs the turns of conversations. *conversation.Engine implements it.
type Engine interface {
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)
	// Directory returns a directory without symbolic links in its path. It returns an error if conversations must not
	// work there.
	Directory(path string) (string, error)
}

// Options configures a Service. All fields except Sandboxes are required.
type Options struct {
	Store     orchestrator.ChangeStore
	Sandboxes orchestrator.Sandboxes
	Secrets   func(dir string) *secrets.Set // secrets to remove from the diffs of a directory
	Hold      time.Duration                 // how long a write may wait for the snapshot; 0 means 2 seconds
	Now       func() time.Time
	NewID     func() string
	Log       *slog.Logger
}

// Service takes snapshots of the files of turns. It is safe for concurrent use once Attach has returned.
type Service struct {
	opts   Options
	engine Engine
	git    *git.Git
	life   context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup
	work   sync.Mutex // held while files are changed by an undo, a redo, or a return to an earlier state

	order   atomic.Int64 // counts the starts and ends of turns
	mu      sync.Mutex
	watches map[cli.TurnID]*watch
}

var (
	_ orchestrator.Snapshots   = (*Service)(nil)
	_ orchestrator.FileChanges = (*Service)(nil)
)

// New creates a Service. The caller must call its method Attach before using it.
func New(o Options) *Service {
	o.Hold = cmp.Or(o.Hold, holdMost)
	life, end := context.WithCancel(context.Background())
	return &Service{opts: o, watches: map[cli.TurnID]*watch{}, life: life, end: end}
}

// Attach sets the components that are constructed after the Service.
func (s *Service) Attach(engine Engine, git *git.Git) { s.engine, s.git = engine, git }

// Close waits for work in the background. All turns must have ended. When ctx is done, Close cancels the work.
func (s *Service) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.end()
		<-done
	}
	return nil
}

// inRepository reports whether a directory on this host is inside a Git repository. It does not run git, because that
// would be too slow for each turn.
func inRepository(dir string) bool {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

const mostRepos = 20

// treesOf returns the Git trees of the repository that contains a directory, and of the repositories nested in it. It
// omits a nested repository to which Git must not write, or for which the function tree returns "".
func (s *Service) treesOf(ctx context.Context, at git.Place,
	tree func(context.Context, *git.Repo) (string, error),
) (repos []*git.Repo, trees []orchestrator.SnapshotTree, err error) {
	first, err := s.open(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	for queue := []*git.Repo{first}; len(queue) > 0; {
		r := queue[0]
		queue = queue[1:]
		before, err := tree(ctx, r)
		if r != first && (errors.Is(err, orchestrator.ErrOutsideRoot) || err == nil && before == "") {
			continue
		}
		repos = append(repos, r)
		if err != nil {
			return repos, trees, err
		}
		trees = append(trees, orchestrator.SnapshotTree{Dir: r.Top, Before: before})
		if before == "" {
			continue
		}
		nested, err := r.Nested(ctx, before)
		if err != nil {
			return repos, trees, err
		}
		for _, dir := range nested {
			if len(repos)+len(queue) >= mostRepos {
				return repos, trees, git.ErrTooLarge
			}
			// A nested repository may have no work tree. For such a directory, open returns the outer repository, so
			// skip it.
			if within, err := s.open(ctx, git.Place{In: at.In, Dir: dir}); err == nil && within.Top == dir {
				queue = append(queue, within)
			}
		}
	}
	return repos, trees, nil
}

// open opens a repository, or returns an error if conversations must not work in it.
func (s *Service) open(ctx context.Context, at git.Place) (*git.Repo, error) {
	return s.git.OpenWithin(ctx, at, s.engine.Directory)
}

// mix finds the turns that wrote to the same repository at the same time as the turn of w. It calls share for all of
// these turns, because their changes cannot be told apart.
func (s *Service) mix(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.watches {
		if other == w || !overlap(w, other) {
			continue
		}
		w.markBeside(other)
		other.markBeside(w)
	}
}

// markBeside calls w.share if the turn of other may have written files while the turn of w was running.
func (w *watch) markBeside(other *watch) {
	other.mu.Lock()
	wrote := other.writes.possible() && (other.endOrder == 0 || w.startOrder < other.endOrder)
	other.mu.Unlock()
	if wrote {
		w.share(other.turn.Prompt.Conversation)
	}
}

// share sets w.shared to the conversation of another turn that wrote to the same repository at the same time.
func (w *watch) share(in orchestrator.ConversationID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shared == nil {
		w.shared = &in
	}
}

func overlap(a, b *watch) bool {
	in := func(one, two *watch) bool {
		return slices.ContainsFunc(one.tops(), func(top string) bool { return two.worksIn(top) })
	}
	return in(a, b) || in(b, a)
}

// worksIn reports whether the turn works in the repository with the given top directory. Before the snapshot is
// complete, the repositories of the turn are unknown. Then worksIn checks whether the turn's directory is inside the
// top directory. The environment of the turn does not matter: sandboxes and this host share the files of a project.
func (w *watch) worksIn(top string) bool {
	w.mu.Lock()
	known := w.writes.snapshotDone
	w.mu.Unlock()
	return slices.Contains(w.tops(), top) || !known && cli.Lies(w.at.Dir, top)
}

func (w *watch) tops() (dirs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.before.repos {
		dirs = append(dirs, r.Top)
	}
	return dirs
}

func (s *Service) forget(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w.turn.ID)
}

// watchesIn returns the turns that work in a repository of c.
func (s *Service) watchesIn(c orchestrator.TurnChanges) (found []*watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		if slices.ContainsFunc(c.Snapshot.Trees, func(tree orchestrator.SnapshotTree) bool {
			return w.worksIn(tree.Dir)
		}) {
			found = append(found, w)
		}
	}
	return found
}

// busy returns a TurnWrites error if a running turn works in a repository of c and may have written
// something.
func (s *Service) busy(c orchestrator.TurnChanges) error {
	for _, w := range s.watchesIn(c) {
		w.mu.Lock()
		writes := w.writes.possible()
		w.mu.Unlock()
		if writes {
			return &orchestrator.TurnWrites{In: w.turn.Prompt.Conversation}
		}
	}
	return nil
}

// repeatSnapshots must be called after a user changed files. It takes a new snapshot for each running turn that has not
// written anything yet.
func (s *Service) repeatSnapshots(ctx context.Context, c orchestrator.TurnChanges) {
	for _, w := range s.watchesIn(c) {
		w.mu.Lock()
		repos, trees, err := w.before.repos, slices.Clone(w.before.trees), error(nil)
		w.mu.Unlock()
		for i, r := range repos[:len(trees)] {
			if trees[i].Before, err = r.Snapshot(ctx, git.BeforeTurn); err == nil {
				err = r.Keep(ctx, beforeRef(w.turn.ID), trees[i].Before)
			}
			if err != nil {
				s.opts.Log.Warn("repeat the snapshot before a turn", "turn", w.turn.ID, "err", err)
				break
			}
		}
		w.mu.Lock()
		late := err != nil || !w.writes.snapshotDone || w.writes.possible()
		if !late {
			w.before.trees = trees
		}
		w.mu.Unlock()
		if late {
			w.share(c.Conversation)
		}
	}
}

// Prune deletes the records of turns and checkpoints that are older than a time, together with their snapshots.
func (s *Service) Prune(ctx context.Context, before time.Time) (n int, err error) {
	for {
		old, err := s.opts.Store.OldChanges(ctx, before, 100)
		if err != nil || len(old) == 0 {
			return n, err
		}
		for _, c := range old {
			for _, tree := range c.Snapshot.Trees {
				r, err := s.open(ctx, git.Place{In: c.Sandbox, Dir: tree.Dir})
				if err == nil {
					err = r.Forget(ctx, beforeRef(cli.TurnID(c.ID)), afterRef(cli.TurnID(c.ID)))
				}
				if err != nil && !errors.Is(err, orchestrator.ErrNoRepository) {
					// Only log an error: the repository may have been deleted.
					s.opts.Log.Debug("delete a snapshot", "dir", tree.Dir, "err", err)
				}
			}
			if err := s.opts.Store.DeleteChanges(ctx, c.ID); err != nil {
				return n, err
			}
			n++
		}
	}
}
