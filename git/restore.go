package git

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ErrInTheWay means that an ignored file is at the path of a file to restore, or at a parent of that path.
var ErrInTheWay = errors.New("ignored files are in the way")

// Differs is the error of Commit and Restore if the contents of files differ from those in the recorded changes.
type Differs struct{ Paths []string }

func (d *Differs) Error() string { return "changed since: " + strings.Join(d.Paths, ", ") }

// Restore reverts changes: it replaces each file's New state by its Old state. It does not touch other files, the index
// and HEAD. A file that already has its Old state counts as restored, because an earlier process may have been killed
// after restoring it. If a file has neither state, Restore changes nothing and returns a *Differs.
func (r *Repo) Restore(ctx context.Context, changes []Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, todo, err := r.prepareRestore(ctx, changes)
	if err != nil || len(todo) == 0 {
		return err
	}
	first, later := todo, []Change(nil)
	if slices.ContainsFunc(todo, func(c Change) bool { return path.Base(c.Path) == ".gitignore" }) {
		first, later = splitDeletions(todo)
	}
	if now, err = r.writeFiles(ctx, now, first); err != nil {
		return err
	}
	// Delete files last. Do not delete files that the restored .gitignore ignores: such a file may be older than the
	// turn, and appears to be new only because the turn changed .gitignore.
	if later, err = r.dropIgnored(ctx, later); err != nil || len(later) == 0 {
		return err
	}
	_, err = r.writeFiles(ctx, now, later)
	return err
}

// writeFiles reverts changes in the working tree. It takes the tree of the current files, and returns the tree of the
// new files.
func (r *Repo) writeFiles(ctx context.Context, current string, changes []Change) (string, error) {
	goal, err := r.revertedTree(ctx, current, changes)
	if err != nil {
		return "", err
	}
	if _, err := r.runShadow(ctx, "", "", "read-tree", "-m", "-u", current, goal); err != nil {
		return "", fmt.Errorf("write the files: %w", err)
	}
	return goal, nil
}

// splitDeletions splits changes into two steps. The first step creates and replaces files, and deletes files that are
// in the way: if a directory becomes a file again, the files in the directory must be deleted first. The second step
// deletes all other files.
func splitDeletions(changes []Change) (first, later []Change) {
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

func (r *Repo) dropIgnored(ctx context.Context, changes []Change) (some []Change, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	var names strings.Builder
	for _, c := range changes {
		names.WriteString(c.Path + "\x00")
	}
	out, err := r.runOwn(ctx, names.String(), "check-ignore", "-z", "--no-index", "--stdin")
	if exit := (*ExitError)(nil); errors.As(err, &exit) && exit.Code == 1 { // no file is ignored
		return changes, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ignored files: %w", err)
	}
	ignored := strings.Split(out, "\x00")
	for _, c := range changes {
		if !slices.Contains(ignored, c.Path) {
			some = append(some, c)
		}
	}
	return some, nil
}

// Check returns the error that Restore would return for these changes, without restoring anything.
func (r *Repo) Check(ctx context.Context, changes []Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _, err := r.prepareRestore(ctx, changes)
	return err
}

// prepareRestore takes a snapshot. It returns the snapshot's tree, and the changes that are still to be reverted.
func (r *Repo) prepareRestore(ctx context.Context, changes []Change) (now string, todo []Change, err error) {
	if now, err = r.snapshot(ctx, AfterTurn); err != nil {
		return "", nil, err
	}
	if todo, err = r.pendingChanges(ctx, now, changes); err != nil {
		return "", nil, err
	}
	return now, todo, r.checkObstacles(ctx, todo)
}

// pendingChanges returns the changes that are not reverted yet. It returns a *Differs if a file has changed again.
func (r *Repo) pendingChanges(ctx context.Context, now string, changes []Change) (todo []Change, err error) {
	have, err := r.blobsAt(ctx, now, changes)
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

// blobsAt returns the blobs in a tree at the paths of changes.
func (r *Repo) blobsAt(ctx context.Context, tree string, changes []Change) (map[string]Blob, error) {
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
		out, err := r.runOwn(ctx, "", args...)
		if err != nil {
			return nil, fmt.Errorf("inspect files: %w", err)
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

// checkObstacles returns ErrInTheWay if an ignored file is at the path of a file to restore, or at a parent of that
// path.
func (r *Repo) checkObstacles(ctx context.Context, changes []Change) error {
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
		out, err := r.runShadow(ctx, "", "", args...)
		if err != nil {
			return fmt.Errorf("list ignored files: %w", err)
		}
		if name, _, _ := strings.Cut(out, "\x00"); name != "" {
			return fmt.Errorf("%w: %s", ErrInTheWay, name)
		}
	}
	return nil
}

// revertedTree returns a tree in which the changes are reverted.
func (r *Repo) revertedTree(ctx context.Context, tree string, changes []Change) (string, error) {
	var input strings.Builder
	for _, gone := range []bool{true, false} { // removals come first, because a file may replace a directory
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
		if _, err := r.runShadow(ctx, "goal", step.input, step.args...); err != nil {
			return "", fmt.Errorf("write a tree: %w", err)
		}
	}
	goal, err := r.runShadow(ctx, "goal", "", "write-tree")
	return strings.TrimSpace(goal), err
}
