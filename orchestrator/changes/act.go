package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
	"ductor/git"
	"ductor/orchestrator"
)

func (s *Service) Changes(ctx context.Context, in orchestrator.ConversationID, id string) (orchestrator.TurnChanges,
	error) {
	c, err := s.opts.Store.ChangesOf(ctx, id)
	if err == nil && c.Conversation != in {
		err = orchestrator.ErrElsewhere
	}
	return c, err
}

// toChange loads the record of a turn or a checkpoint, before ductor changes the files for a user. It returns an error
// if the user's role does not allow changes, or if a running turn may have written to the same repositories.
func (s *Service) toChange(ctx context.Context, by orchestrator.Press, id string) (orchestrator.TurnChanges, error) {
	if !by.May(orchestrator.ReachFiles) {
		return orchestrator.TurnChanges{}, orchestrator.ErrNotAllowed
	}
	c, err := s.Changes(ctx, by.Conversation, id)
	if err == nil {
		err = s.busy(c)
	}
	return c, err
}

// turnToChange is like toChange, but only for turns. For a checkpoint it returns an error.
func (s *Service) turnToChange(ctx context.Context, by orchestrator.Press, turn cli.TurnID) (orchestrator.TurnChanges,
	error) {
	c, err := s.toChange(ctx, by, string(turn))
	if err == nil && c.Checkpoint {
		err = orchestrator.ErrNoChanges
	}
	return c, err
}

func (s *Service) Undo(ctx context.Context, by orchestrator.Press, turn cli.TurnID) (orchestrator.TurnChanges, error) {
	return s.turnBack(ctx, by, turn, true)
}

func (s *Service) Redo(ctx context.Context, by orchestrator.Press, turn cli.TurnID) (orchestrator.TurnChanges, error) {
	return s.turnBack(ctx, by, turn, false)
}

func (s *Service) turnBack(ctx context.Context, by orchestrator.Press, turn cli.TurnID,
	undone bool) (orchestrator.TurnChanges, error) {
	s.work.Lock()
	defer s.work.Unlock()
	c, err := s.turnToChange(ctx, by, turn)
	switch {
	case err != nil:
		return c, err
	case c.Undone && undone:
		return c, orchestrator.ErrUndone
	case !c.Undone && !undone:
		return c, orchestrator.ErrNotUndone
	}
	plan, err := s.plan(ctx, c, func(r *git.Repo, t orchestrator.SnapshotTree) (string, string, error) {
		if undone {
			return t.Before, t.After, nil
		}
		return t.After, t.Before, nil
	})
	if err != nil {
		return c, err
	}
	if err := plan.carryOut(ctx); err != nil {
		return c, err
	}
	s.repeatSnapshots(context.WithoutCancel(ctx), c)
	c.Undone = undone
	return c, s.opts.Store.SaveChanges(ctx, c)
}

type plan []planned

type planned struct {
	repo    *git.Repo
	changes []git.Change
}

// plan returns which files of all repositories of c must be restored. For each repository, treesOf returns two Git
// trees: the tree to restore, and the tree that the files must match now.
func (s *Service) plan(ctx context.Context, c orchestrator.TurnChanges,
	treesOf func(*git.Repo, orchestrator.SnapshotTree) (to, from string, err error)) (p plan, err error) {
	for _, t := range c.Snapshot.Trees {
		r, err := s.open(ctx, git.Place{In: c.Sandbox, Dir: t.Dir})
		if err != nil {
			return nil, err
		}
		to, from, err := treesOf(r, t)
		if err != nil {
			return nil, err
		}
		all, err := r.Changes(ctx, to, from)
		if err != nil {
			return nil, fmt.Errorf("plan the restore: %w", err)
		}
		p = append(p, planned{r, restorable(all)})
	}
	return p, nil
}

// carryOut restores the files of all repositories. First it checks all files. If it cannot restore a file, it
// changes nothing.
func (p plan) carryOut(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	for _, act := range []func(*git.Repo, context.Context, []git.Change) error{(*git.Repo).Check, (*git.Repo).Restore} {
		for _, one := range p {
			if err := act(one.repo, ctx, one.changes); err != nil {
				return refusal(err)
			}
		}
	}
	return nil
}

func refusal(err error) error {
	var differs *git.Differs
	if errors.As(err, &differs) {
		return &orchestrator.ChangedSince{Paths: differs.Paths}
	}
	for _, why := range []struct{ git, domain error }{
		{git.ErrInTheWay, orchestrator.ErrInTheWay}, {git.ErrNothing, orchestrator.ErrCommitted},
		{git.ErrNoIdentity, orchestrator.ErrNoIdentity},
		{git.ErrMerging, orchestrator.ErrMerging}, {git.ErrFilter, orchestrator.ErrGitFilter},
	} {
		if errors.Is(err, why.git) {
			return fmt.Errorf("%w: %w", why.domain, err)
		}
	}
	return err
}

func (s *Service) Return(ctx context.Context, by orchestrator.Press, id string, side orchestrator.ReturnTo) (to,
	before orchestrator.TurnChanges, err error) {
	s.work.Lock()
	defer s.work.Unlock()
	if to, err = s.toChange(ctx, by, id); err != nil {
		return to, before, err
	}
	now, err := s.checkpoint(ctx, by, git.Place{In: to.Sandbox, Dir: to.Snapshot.Trees[0].Dir}, "")
	if err != nil {
		return to, before, err
	}
	plan, err := s.plan(ctx, to, func(r *git.Repo, t orchestrator.SnapshotTree) (string, string, error) {
		for _, tree := range now.Snapshot.Trees {
			if tree.Dir == t.Dir && side == orchestrator.AfterTurn {
				return t.After, tree.Before, nil
			}
			if tree.Dir == t.Dir {
				return t.Before, tree.Before, nil
			}
		}
		return "", "", orchestrator.ErrNoRepository
	})
	if err != nil {
		return to, now, err
	}
	for _, p := range plan {
		now.Changed.Files += len(p.changes)
	}
	err = plan.carryOut(ctx)
	if err == nil {
		s.repeatSnapshots(context.WithoutCancel(ctx), to)
	}
	return to, now, err
}

func (s *Service) Checkpoint(ctx context.Context, by orchestrator.Press, name string) (orchestrator.TurnChanges,
	error) {
	if !by.May(orchestrator.ReachFiles) {
		return orchestrator.TurnChanges{}, orchestrator.ErrNotAllowed
	}
	at, err := s.placeOf(ctx, by.Conversation)
	if err != nil {
		return orchestrator.TurnChanges{}, err
	}
	return s.checkpoint(ctx, by, at, cli.Shorten(strings.Join(strings.Fields(name), " "), 100))
}

// checkpoint stores the state of all files in a repository.
func (s *Service) checkpoint(ctx context.Context, by orchestrator.Press, at git.Place,
	name string) (orchestrator.TurnChanges, error) {
	ctx = context.WithoutCancel(ctx)
	repos, trees, err := s.treesOf(ctx, at, func(ctx context.Context, r *git.Repo) (string, error) {
		return r.Snapshot(ctx, git.AfterTurn)
	})
	if err != nil {
		return orchestrator.TurnChanges{}, err
	}
	st, err := s.engine.Status(ctx, by.Conversation)
	if err != nil {
		return orchestrator.TurnChanges{}, err
	}
	c := orchestrator.TurnChanges{
		ID: s.opts.NewID(), Conversation: by.Conversation, Session: st.Session.ID, Title: name, At: s.opts.Now(),
		Sandbox: at.In, Checkpoint: true,
	}
	_, trees, err = keepTrees(ctx, repos, trees, beforeRef(cli.TurnID(c.ID)))
	if err == nil && len(trees) == 0 {
		err = orchestrator.ErrOutsideRoot
	}
	if err != nil {
		return c, err
	}
	for i := range trees {
		trees[i].After = trees[i].Before
	}
	c.Snapshot.Trees = trees
	return c, s.opts.Store.SaveChanges(ctx, c)
}

const mostListed = 60

func (s *Service) Checkpoints(ctx context.Context, in orchestrator.ConversationID) ([]orchestrator.TurnChanges, error) {
	st, err := s.engine.Status(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.opts.Store.ListChanges(ctx, in, st.Session.ID, mostListed)
}

func (s *Service) SessionChanges(ctx context.Context, in orchestrator.ConversationID,
	session orchestrator.SessionID) ([]orchestrator.TurnChanges, error) {
	all, err := s.opts.Store.ListChanges(ctx, in, session, mostListed)
	return slices.DeleteFunc(all, func(c orchestrator.TurnChanges) bool { return c.Session != session }), err
}

func (s *Service) placeOf(ctx context.Context, in orchestrator.ConversationID) (git.Place, error) {
	st, err := s.engine.Status(ctx, in)
	if err != nil {
		return git.Place{}, err
	}
	at := git.Place{Dir: st.Dir}
	if s.opts.Sandboxes != nil {
		at.In = s.opts.Sandboxes.Of(st.Dir, in)
	}
	return at, nil
}

func (s *Service) Commit(ctx context.Context, by orchestrator.Press, turn cli.TurnID,
	message string) (orchestrator.TurnChanges, error) {
	s.work.Lock()
	defer s.work.Unlock()
	c, err := s.turnToChange(ctx, by, turn)
	switch {
	case err != nil:
		return c, err
	case c.Undone:
		return c, orchestrator.ErrUndone
	case c.Commit != "":
		return c, orchestrator.ErrCommitted
	case strings.TrimSpace(message) == "":
		return c, orchestrator.ErrBadChoice
	}
	ctx = context.WithoutCancel(ctx)
	c.Snapshot.Trees = c.Snapshot.Trees[:1]
	p, err := s.plan(ctx, c, func(_ *git.Repo, t orchestrator.SnapshotTree) (string, string, error) {
		return t.Before, t.After, nil
	})
	if err != nil {
		return c, err
	}
	id, err := p[0].repo.Commit(ctx, p[0].changes, strings.TrimSpace(message))
	if id == "" {
		return c, refusal(err)
	}
	kept, findErr := s.opts.Store.ChangesOf(ctx, c.ID)
	kept.Commit = id
	return kept, errors.Join(err, findErr, s.opts.Store.SaveChanges(ctx, kept))
}
