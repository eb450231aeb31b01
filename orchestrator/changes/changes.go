package changes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ductor/cli"
	"ductor/git"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// Engine runs the turns of conversations. *conversation.Engine implements it.
type Engine interface {
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)
	// Directory says whether conversations may work in a directory, and gives it with its links followed.
	Directory(path string) (string, error)
}

// Options are what a Service is made of. Sandboxes may be nil, all others are required.
type Options struct {
	Store     orchestrator.ChangeStore
	Sandboxes orchestrator.Sandboxes
	Secrets   func(dir string) *secrets.Set // that must not be shown of a directory
	Hold      time.Duration                 // that a write waits for the look at the files before it; 2 s when 0
	Now       func() time.Time
	NewID     func() string
	Log       *slog.Logger
}

// Service looks at the files of turns. Safe for concurrent use after Attach.
type Service struct {
	opts   Options
	engine Engine
	git    *git.Git
	life   context.Context // of what goes on beside turns
	end    context.CancelFunc
	wg     sync.WaitGroup
	work   sync.Mutex // one user's change of files at a time

	mu      sync.Mutex
	watches map[cli.TurnID]*watch
}

var (
	_ orchestrator.Snapshots   = (*Service)(nil)
	_ orchestrator.FileChanges = (*Service)(nil)
)

// New makes a Service, which is of use after Attach.
func New(o Options) *Service {
	o.Hold = cmp.Or(o.Hold, holdMost)
	life, end := context.WithCancel(context.Background())
	return &Service{opts: o, watches: map[cli.TurnID]*watch{}, life: life, end: end}
}

// Attach connects what is constructed after a Service.
func (s *Service) Attach(engine Engine, git *git.Git) { s.engine, s.git = engine, git }

// Close waits for what goes on beside turns, which have ended. What has not ended with ctx is ended.
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

// inRepository says whether a directory of this host is below one that has a repository: what is in none costs no process.
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

// mostRepos bounds the repositories within one that are looked at.
const mostRepos = 20

// look gives the tree of the repository of a directory, and those of the repositories within.
func (s *Service) look(ctx context.Context, at git.Place, tree func(context.Context, *git.Repo) (string, error)) (repos []*git.Repo, trees []orchestrator.SnapshotTree, err error) {
	first, err := s.open(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	for queue := []*git.Repo{first}; len(queue) > 0; {
		r := queue[0]
		queue = queue[1:]
		before, err := tree(ctx, r)
		if err != nil {
			return repos, trees, err
		}
		repos, trees = append(repos, r), append(trees, orchestrator.SnapshotTree{Dir: r.Top, Before: before})
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
			if within, err := s.open(ctx, git.Place{In: at.In, Dir: dir}); err == nil && within.Top == dir { // else it is not checked out
				queue = append(queue, within)
			}
		}
	}
	return repos, trees, nil
}

// open opens a repository that conversations may work in.
func (s *Service) open(ctx context.Context, at git.Place) (*git.Repo, error) {
	r, err := s.git.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	if real, err := s.engine.Directory(r.Top); err != nil || real != r.Top {
		return nil, orchestrator.ErrOutsideRoot
	}
	return r, nil
}

// join marks turns that work in one repository at the same time: what each of them changes is not to be told apart.
func (s *Service) join(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.watches {
		if other == w || !overlap(w, other) {
			continue
		}
		for _, one := range []*watch{w, other} {
			one.mu.Lock()
			if one.why == "" {
				one.why = orchestrator.NoUndoShared
			}
			one.mu.Unlock()
		}
	}
}

func overlap(a, b *watch) bool {
	for _, one := range a.tops() {
		for _, two := range b.tops() {
			if one == two && a.turn.Sandbox == b.turn.Sandbox {
				return true
			}
		}
	}
	return false
}

func (w *watch) tops() (dirs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.repos {
		dirs = append(dirs, r.Top)
	}
	return dirs
}

func (s *Service) forget(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w.turn.ID)
}

// busy says whether a turn works in one of the repositories of a snapshot.
func (s *Service) busy(c orchestrator.TurnChanges) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		for _, top := range w.tops() {
			for _, tree := range c.Trees {
				if top == tree.Dir && w.turn.Sandbox == c.Sandbox {
					return true
				}
			}
		}
	}
	return false
}

// Prune forgets what is older than a moment, snapshots included.
func (s *Service) Prune(ctx context.Context, before time.Time) (n int, err error) {
	for {
		old, err := s.opts.Store.OldChanges(ctx, before, 100)
		if err != nil || len(old) == 0 {
			return n, err
		}
		for _, c := range old {
			for _, tree := range c.Trees {
				r, err := s.git.Open(ctx, git.Place{In: c.Sandbox, Dir: tree.Dir})
				if err == nil {
					err = r.Forget(ctx, beforeRef(cli.TurnID(c.ID)), afterRef(cli.TurnID(c.ID)))
				}
				if err != nil && !errors.Is(err, orchestrator.ErrNoRepository) {
					s.opts.Log.Debug("forget a snapshot", "dir", tree.Dir, "err", err) // the repository may be gone
				}
			}
			if err := s.opts.Store.DeleteChanges(ctx, c.ID); err != nil {
				return n, err
			}
			n++
		}
	}
}
