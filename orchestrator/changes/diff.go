package changes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ductor/cli"
	"ductor/git"
	"ductor/orchestrator"
)

const mostDiff = 8 << 20

func (s *Service) Diff(ctx context.Context, in orchestrator.ConversationID, turn cli.TurnID) (string, error) {
	c, err := s.Changes(ctx, in, string(turn))
	if err != nil {
		return "", err
	}
	return s.diff(ctx, c, "", func(_ *git.Repo, t orchestrator.SnapshotTree) (string, string, error) {
		return t.Before, t.After, nil
	})
}

func (s *Service) DiffSince(ctx context.Context, by orchestrator.Press, since orchestrator.DiffSince,
	path string) (string, error) {
	reaches := by.May(orchestrator.ReachFiles)
	if !reaches && since != orchestrator.SinceTurn {
		return "", orchestrator.ErrNotAllowed
	}
	at, err := s.placeOf(ctx, by.Conversation)
	if err != nil {
		return "", err
	}
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(at.Dir, path)
	}
	diff, err := s.diffSince(ctx, by, at, since, path)
	if err == nil && diff == "" && reaches && isMissing(at.Dir, path) {
		return "", orchestrator.ErrNoFile
	}
	return diff, err
}

// isMissing reports whether a path below dir does not exist. It returns false if the path leads out of dir, so that
// users cannot search this machine for files.
func isMissing(dir, path string) bool {
	below, err := filepath.Rel(dir, path)
	if path == "" || err != nil || !filepath.IsLocal(below) {
		return false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Lstat(below)
	return errors.Is(err, fs.ErrNotExist)
}

func (s *Service) diffSince(ctx context.Context, by orchestrator.Press, at git.Place, since orchestrator.DiffSince,
	path string) (string, error) {
	if since == orchestrator.SinceCommit {
		return s.sinceCommit(ctx, at, path)
	}
	st, err := s.engine.Status(ctx, by.Conversation)
	if err != nil {
		return "", err
	}
	from, err := s.beginning(ctx, by.Conversation, st.Session.ID, since)
	if err != nil {
		return "", err
	}
	return s.diff(ctx, from, path, func(r *git.Repo, t orchestrator.SnapshotTree) (string, string, error) {
		if !by.May(orchestrator.ReachFiles) { // other users may have made the later changes
			return t.Before, t.After, nil
		}
		now, err := r.Snapshot(ctx, git.AfterTurn)
		return t.Before, now, err
	})
}

// beginning returns the changes of the turn with which the diff begins. For SinceTurn, this is the session's latest
// turn that changed files. For SinceSession, it is the session's first such turn.
func (s *Service) beginning(ctx context.Context, in orchestrator.ConversationID, session orchestrator.SessionID,
	since orchestrator.DiffSince) (from orchestrator.TurnChanges, err error) {
	all, err := s.opts.Store.ListChanges(ctx, in, session, 10_000)
	if err != nil {
		return from, err
	}
	for _, c := range all {
		if c.Checkpoint || c.Session != session {
			continue
		}
		if from = c; since == orchestrator.SinceTurn {
			break
		}
	}
	if from.ID == "" {
		return from, orchestrator.ErrNoChanges
	}
	return from, nil
}

func (s *Service) sinceCommit(ctx context.Context, at git.Place, path string) (string, error) {
	r, err := s.open(ctx, at)
	if err != nil {
		return "", err
	}
	head, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	tree := orchestrator.SnapshotTree{Dir: r.Top, Before: head}
	c := orchestrator.TurnChanges{
		Sandbox: at.In, Snapshot: orchestrator.Snapshot{Trees: []orchestrator.SnapshotTree{tree}},
	}
	return s.diff(ctx, c, path, func(r *git.Repo, t orchestrator.SnapshotTree) (string, string, error) {
		now, err := r.Snapshot(ctx, git.AfterTurn)
		return t.Before, now, err
	})
}

func (s *Service) diff(ctx context.Context, c orchestrator.TurnChanges, path string,
	trees func(*git.Repo, orchestrator.SnapshotTree) (from, to string, err error)) (string, error) {
	var all strings.Builder
	for i, t := range c.Snapshot.Trees {
		below := ""
		if path != "" {
			rel, err := filepath.Rel(t.Dir, path)
			if err != nil || !filepath.IsLocal(rel) {
				continue
			}
			below = rel
		}
		r, err := s.open(ctx, git.Place{In: c.Sandbox, Dir: t.Dir})
		if err != nil {
			return "", err
		}
		from, to, err := trees(r, t)
		if err != nil {
			return "", err
		}
		prefix := ""
		if i > 0 {
			if prefix, err = filepath.Rel(c.Snapshot.Trees[0].Dir, t.Dir); err != nil {
				return "", err
			}
			prefix += "/"
		}
		text, err := r.Diff(ctx, from, to, git.DiffOptions{Path: below, Prefix: prefix,
			Limit: mostDiff - int64(all.Len())})
		if errors.Is(err, git.ErrTooMuch) {
			return "", orchestrator.ErrDiffTooLong
		}
		if err != nil {
			return "", err
		}
		all.WriteString(s.opts.Secrets(t.Dir).String(text))
	}
	return all.String(), nil
}
