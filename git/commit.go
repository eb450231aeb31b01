package git

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Errors of Commit. If Commit returns one of them, it has committed nothing.
var (
	ErrNoIdentity = errors.New("git does not know the name and the address of its user")
	ErrMerging    = errors.New("a merge, a rebase or a revert is under way")
	ErrFilter     = errors.New("a filter belongs to it")
	ErrNothing    = errors.New("the last commit has it already")
)

// Commit commits the given changes and nothing else. It uses the user name from Git's settings, and runs no hooks. It
// also adds the changes to the index; other staged changes remain staged. If a file no longer has the content of
// Change.New, Commit returns a *Differs and commits nothing.
func (r *Repo) Commit(ctx context.Context, changes []Change, message string) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, headTree, err := r.commitBase(ctx)
	if err != nil {
		return "", err
	}
	if err := r.checkUnchanged(ctx, changes); err != nil {
		return "", err
	}
	names, err := r.knownPaths(ctx, headTree, changes)
	if err != nil {
		return "", err
	}
	if err := r.rejectFiltered(ctx, names); err != nil {
		return "", err
	}
	tree, err := r.writeCommitTree(ctx, headTree, names)
	if err != nil {
		return "", err
	}
	if id, err = r.createCommit(ctx, tree, head, message); err != nil {
		return "", err
	}
	return id, r.updateIndex(ctx, tree, changes, names)
}

// commitBase returns the ID and the tree of the last commit. If there is no commit yet, the ID is "" and the tree is the
// empty one. commitBase returns ErrMerging if a merge or the like is under way.
func (r *Repo) commitBase(ctx context.Context) (head, tree string, err error) {
	const names = "MERGE_HEAD\nREBASE_HEAD\nCHERRY_PICK_HEAD\nREVERT_HEAD\nHEAD^{commit}\nHEAD^{tree}\n"
	out, err := r.runOwn(ctx, names, "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return "", "", fmt.Errorf("find the last commit: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 6 {
		return "", "", fmt.Errorf("find the last commit: git printed %q", out)
	}
	missing := func(line string) bool { return strings.HasSuffix(line, " missing") }
	for _, under := range lines[:4] {
		if !missing(under) {
			return "", "", ErrMerging
		}
	}
	if missing(lines[4]) {
		tree, err = r.Head(ctx)
		return "", tree, err
	}
	return lines[4], lines[5], nil
}

// updateIndex sets the given files in the index to their state in a tree. Unlike git reset, it does not read the files,
// so Git does not run filters on their contents.
func (r *Repo) updateIndex(ctx context.Context, tree string, changes []Change, names string) error {
	now, err := r.blobsAt(ctx, tree, changes)
	if err != nil {
		return err
	}
	var input strings.Builder
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		input.WriteString(strings.TrimPrefix(now[name].Mode, "00000") + " " + now[name].ID + "\t" + name + "\x00")
	}
	if _, err := r.writeOwn(ctx, input.String(), "update-index", "-z", "--index-info"); err != nil {
		return fmt.Errorf("update the index: %w", err)
	}
	return nil
}

// checkUnchanged returns a *Differs that names the files whose content differs from Change.New.
func (r *Repo) checkUnchanged(ctx context.Context, changes []Change) error {
	now, err := r.snapshot(ctx, AfterTurn)
	if err != nil {
		return err
	}
	have, err := r.blobsAt(ctx, now, changes)
	if err != nil {
		return err
	}
	var others []string
	for _, c := range changes {
		if have[c.Path] != c.New {
			others = append(others, c.Path)
		}
	}
	if len(others) > 0 {
		return &Differs{others}
	}
	return nil
}

// knownPaths returns the paths of the changed files, each followed by a zero byte. It omits a file that exists neither
// in the working tree nor in head, the tree of the last commit, because Git would reject its path. If it omits all
// files, it returns ErrNothing.
func (r *Repo) knownPaths(ctx context.Context, head string, changes []Change) (string, error) {
	before, err := r.blobsAt(ctx, head, changes)
	if err != nil {
		return "", err
	}
	var names strings.Builder
	for _, c := range changes {
		if c.New.There() || before[c.Path].There() {
			names.WriteString(c.Path + "\x00")
		}
	}
	if names.Len() == 0 {
		return "", ErrNothing
	}
	return names.String(), nil
}

// rejectFiltered returns ErrFilter if Git would have to run a filter program, such as LFS, for one of the files. ductor
// never runs filters.
func (r *Repo) rejectFiltered(ctx context.Context, names string) error {
	out, err := r.runOwn(ctx, names, "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return fmt.Errorf("check for filters: %w", err)
	}
	fields := strings.Split(out, "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		if value := fields[i+2]; value != "unspecified" && value != "unset" {
			return fmt.Errorf("%w: %s", ErrFilter, fields[i])
		}
	}
	return nil
}

// writeCommitTree writes a tree with the current content of the given files, and with all other files of head, the tree
// of the last commit. It returns ErrNothing if the new tree equals head.
func (r *Repo) writeCommitTree(ctx context.Context, head, files string) (tree string, err error) {
	run, done, err := r.converter(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, done()) }()
	for _, step := range []struct {
		input string
		args  []string
	}{{"", []string{"read-tree", head}}, {files, []string{"--literal-pathspecs", "add", "-A", "-f",
		"--pathspec-from-file=-", "--pathspec-file-nul"}}, {"", []string{"write-tree"}}} {
		out, err := run(ctx, path.Join(r.shadow.dir, "commit"), step.input, step.args...)
		if err != nil {
			return "", fmt.Errorf("write the tree of a commit: %w", err)
		}
		tree = strings.TrimSpace(out)
	}
	if tree == head {
		return "", ErrNothing
	}
	return tree, nil
}

// converter returns a function that runs Git with an index file. The function is for commands that convert the contents
// of files. No setting of the repository can make these commands run a program; see neutral. The caller must call done
// at the end.
//
// In a sandbox, the function also disables all filters, because rejectFiltered cannot detect a filter with the name
// "unset": check-attr prints this word for files without a filter.
func (r *Repo) converter(ctx context.Context) (run convertFunc, done func() error, err error) {
	if r.in == "" {
		n, err := r.git.neutralFor(ctx, r.Top)
		if err != nil {
			return nil, nil, err
		}
		return n.run, n.close, nil
	}
	names, err := listSettingNames(ctx, r.launcher, r.Top)
	return func(ctx context.Context, index, input string, args ...string) (string, error) {
		return execute(ctx, r.launcher, command{args: args, dir: r.Top,
			env: append(gitEnv(safeSettings(names)), "GIT_INDEX_FILE="+index), input: input, timeout: r.timeout(),
			limit: maxOutput})
	}, func() error { return nil }, err
}

// convertFunc runs Git with an index file.
type convertFunc func(ctx context.Context, index, input string, args ...string) (string, error)

// createCommit creates a commit and makes HEAD point to it. The new commit has the parent head, or no parent if head is
// "". createCommit fails if HEAD no longer points to the parent.
func (r *Repo) createCommit(ctx context.Context, tree, head, message string) (string, error) {
	args := []string{"commit-tree", tree, "-F", "-"}
	if head != "" {
		args = append(args, "-p", head)
	}
	id, err := r.runOwn(ctx, message+"\n", args...)
	var exit *ExitError
	if errors.As(err, &exit) && strings.Contains(exit.Stderr, "ident") {
		return "", fmt.Errorf("%w: %w", ErrNoIdentity, err)
	}
	if err != nil {
		return "", fmt.Errorf("create a commit: %w", err)
	}
	id = strings.TrimSpace(id)
	old := head
	if old == "" {
		old = strings.Repeat("0", len(id))
	}
	subject, _, _ := strings.Cut(message, "\n")
	_, err = r.writeOwn(ctx, "", "update-ref", "-m", "commit: "+subject, "HEAD", id, old)
	return id, err
}
