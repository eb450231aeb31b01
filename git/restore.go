package git

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ErrInTheWay says that something that snapshots leave out is where a file belongs.
var ErrInTheWay = errors.New("ignored files are in the way")

// Differs are paths that are neither as they were before nor as they became.
type Differs struct{ Paths []string }

func (d *Differs) Error() string { return "changed since: " + strings.Join(d.Paths, ", ") }

// Restore has each file of changes be as Old says, where it is as New says; all others stay. If one is as neither says, nothing changes, and
// the error is a *Differs. What a process that died has restored already counts as done. The index and HEAD stay as they are.
func (r *Repo) Restore(ctx context.Context, changes []Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, todo, err := r.check(ctx, changes)
	if err != nil || len(todo) == 0 {
		return err
	}
	first, later := todo, []Change(nil)
	if slices.ContainsFunc(todo, func(c Change) bool { return path.Base(c.Path) == ".gitignore" }) {
		first, later = apart(todo)
	}
	if now, err = r.reach(ctx, now, first); err != nil {
		return err
	}
	// A file that came to be looked at only because it was no longer ignored stays.
	if later, err = r.notIgnored(ctx, later); err != nil || len(later) == 0 {
		return err
	}
	_, err = r.reach(ctx, now, later)
	return err
}

// reach has the files be as changes say, and gives their tree.
func (r *Repo) reach(ctx context.Context, now string, changes []Change) (string, error) {
	goal, err := r.with(ctx, now, changes)
	if err != nil {
		return "", err
	}
	if _, err := r.second(ctx, "", "", "read-tree", "-m", "-u", now, goal); err != nil {
		return "", fmt.Errorf("write the files: %w", err)
	}
	return goal, nil
}

// apart takes the files that are to be deleted out of changes, but those that are in the way of another one.
func apart(changes []Change) (first, later []Change) {
	stays := map[string]bool{}
	for _, c := range changes {
		stays[c.Path] = c.Old.There()
	}
	for _, c := range changes {
		inTheWay := false
		for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
			inTheWay = inTheWay || stays[dir]
		}
		if c.Old.There() || inTheWay {
			first = append(first, c)
		} else {
			later = append(later, c)
		}
	}
	return first, later
}

// notIgnored takes the changes of ignored files out.
func (r *Repo) notIgnored(ctx context.Context, changes []Change) (some []Change, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	var names strings.Builder
	for _, c := range changes {
		names.WriteString(c.Path + "\x00")
	}
	out, err := r.own(ctx, names.String(), "check-ignore", "-z", "--no-index", "--stdin")
	if exit := (*ExitError)(nil); errors.As(err, &exit) && exit.Code == 1 { // none of them
		return changes, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for ignored files: %w", err)
	}
	ignored := strings.Split(out, "\x00")
	for _, c := range changes {
		if !slices.Contains(ignored, c.Path) {
			some = append(some, c)
		}
	}
	return some, nil
}

// Check gives the error with which Restore would refuse changes.
func (r *Repo) Check(ctx context.Context, changes []Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _, err := r.check(ctx, changes)
	return err
}

// check looks at the files, and gives the changes that are still to be reverted.
func (r *Repo) check(ctx context.Context, changes []Change) (now string, todo []Change, err error) {
	if now, err = r.snapshot(ctx, AfterTurn); err != nil {
		return "", nil, err
	}
	if todo, err = r.compare(ctx, now, changes); err != nil {
		return "", nil, err
	}
	return now, todo, r.clear(ctx, todo)
}

// compare gives the changes that are still to be reverted; a *Differs if there are others since.
func (r *Repo) compare(ctx context.Context, now string, changes []Change) (todo []Change, err error) {
	have, err := r.listed(ctx, now, changes)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, c := range changes {
		switch have[c.Path] {
		case c.New:
			todo = append(todo, c)
		case c.Old:
		default:
			others = append(others, c.Path)
		}
	}
	if len(others) > 0 {
		return nil, &Differs{others}
	}
	return todo, nil
}

// listed gives what a tree has at the paths of changes.
func (r *Repo) listed(ctx context.Context, tree string, changes []Change) (map[string]Blob, error) {
	have := map[string]Blob{}
	for _, c := range changes {
		zero := c.Old.ID
		if c.Old.There() {
			zero = c.New.ID
		}
		have[c.Path] = Blob{"000000", strings.Repeat("0", len(zero))}
	}
	for some := range slices.Chunk(changes, 500) {
		args := []string{"--literal-pathspecs", "ls-tree", "-z", "--full-tree", tree, "--"}
		for _, c := range some {
			args = append(args, c.Path)
		}
		out, err := r.own(ctx, "", args...)
		if err != nil {
			return nil, fmt.Errorf("look at the files: %w", err)
		}
		for line := range strings.SplitSeq(out, "\x00") {
			head, name, ok := strings.Cut(line, "\t")
			if meta := strings.Fields(head); ok && len(meta) == 3 {
				have[name] = Blob{meta[0], meta[2]}
			}
		}
	}
	return have, nil
}

// clear gives ErrInTheWay if an ignored file is where a file is to be written.
func (r *Repo) clear(ctx context.Context, changes []Change) error {
	for some := range slices.Chunk(changes, 500) {
		args := []string{"ls-files", "-z", "-o", "-i", "--exclude-standard", "--"}
		paths := len(args)
		for _, c := range some {
			if c.Old.There() && !c.New.There() {
				args = append(args, c.Path)
			}
		}
		if len(args) == paths {
			continue
		}
		out, err := r.second(ctx, "", "", args...)
		if err != nil {
			return fmt.Errorf("look for ignored files: %w", err)
		}
		if name, _, _ := strings.Cut(out, "\x00"); name != "" {
			return fmt.Errorf("%w: %s", ErrInTheWay, name)
		}
	}
	return nil
}

// with gives a tree that has changes reverted.
func (r *Repo) with(ctx context.Context, tree string, changes []Change) (string, error) {
	var input strings.Builder
	for _, gone := range []bool{true, false} { // a directory goes before a file takes its place
		for _, c := range changes {
			if c.Old.There() != gone {
				input.WriteString(strings.TrimPrefix(c.Old.Mode, "000") + " " + c.Old.ID + "\t" + c.Path + "\x00")
			}
		}
	}
	for _, step := range []struct {
		input string
		args  []string
	}{{"", []string{"read-tree", tree}}, {input.String(), []string{"update-index", "-z", "--add", "--index-info"}}} {
		if _, err := r.second(ctx, "goal", step.input, step.args...); err != nil {
			return "", fmt.Errorf("make the tree: %w", err)
		}
	}
	goal, err := r.second(ctx, "goal", "", "write-tree")
	return strings.TrimSpace(goal), err
}
