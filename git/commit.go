package git

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Why nothing is committed.
var (
	ErrNoIdentity = errors.New("git does not know the name and the address of its user")
	ErrMerging    = errors.New("a merge, a rebase or a revert is under way")
	ErrFilter     = errors.New("a filter belongs to it")
	ErrNothing    = errors.New("the last commit has it already")
)

// Commit makes a commit of changes and of nothing else, in the name that the configuration of git has, without hooks. The index has them
// too then; what else is in it stays. Files that are not as New says are a *Differs; then nothing is committed.
func (r *Repo) Commit(ctx context.Context, changes []Change, message string) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, under := range []string{"MERGE_HEAD", "REBASE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if _, err := r.own(ctx, "", "rev-parse", "--verify", "-q", under); err == nil {
			return "", ErrMerging
		}
	}
	if err := r.asLeft(ctx, changes); err != nil {
		return "", err
	}
	head, err := r.own(ctx, "", "rev-parse", "--verify", "-q", "HEAD^{commit}")
	var exit *ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	head = strings.TrimSpace(head)
	names, err := r.known(ctx, changes)
	if err != nil {
		return "", err
	}
	if err := r.unfiltered(ctx, names); err != nil {
		return "", err
	}
	tree, err := r.treeToCommit(ctx, head, names)
	if err != nil {
		return "", err
	}
	if id, err = r.commitTree(ctx, tree, head, message); err != nil {
		return "", err
	}
	if _, err := r.own(ctx, names, "--literal-pathspecs", "reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
		return id, fmt.Errorf("bring the index up to date: %w", err)
	}
	return id, nil
}

// asLeft gives a *Differs with the files that are not as New says.
func (r *Repo) asLeft(ctx context.Context, changes []Change) error {
	now, err := r.snapshot(ctx, AfterTurn)
	if err != nil {
		return err
	}
	have, err := r.listed(ctx, now, changes)
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

// known lists the files that are there or in the last commit, each ended by a zero byte: git knows no others.
func (r *Repo) known(ctx context.Context, changes []Change) (string, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return "", err
	}
	before, err := r.listed(ctx, head, changes)
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

// unfiltered gives ErrFilter if git would have a program change one of the files, such as LFS: ductor runs none.
func (r *Repo) unfiltered(ctx context.Context, names string) error {
	out, err := r.own(ctx, names, "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return fmt.Errorf("look for filters: %w", err)
	}
	fields := strings.Split(out, "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		if value := fields[i+2]; value != "unspecified" && value != "unset" {
			return fmt.Errorf("%w: %s", ErrFilter, fields[i])
		}
	}
	return nil
}

// treeToCommit is the last commit with the files as they are.
func (r *Repo) treeToCommit(ctx context.Context, head, files string) (string, error) {
	start := []string{"read-tree", "--empty"}
	if head != "" {
		start = []string{"read-tree", head}
	}
	names, err := listed(ctx, r.launcher, r.Top) // a filter of which check-attr says that it is none can be called so
	if err != nil {
		return "", err
	}
	env := append(environment(settings(names)), "GIT_INDEX_FILE="+path.Join(r.secondDir(), "commit"))
	tree := ""
	for _, step := range []struct {
		input string
		args  []string
	}{{"", start}, {files, []string{"--literal-pathspecs", "add", "-A", "-f", "--pathspec-from-file=-", "--pathspec-file-nul"}}, {"", []string{"write-tree"}}} {
		out, err := execute(ctx, r.launcher, command{args: step.args, dir: r.Top, env: env, input: step.input, wait: r.patience(), limit: most})
		if err != nil {
			return "", fmt.Errorf("make the tree of a commit: %w", err)
		}
		tree = strings.TrimSpace(out)
	}
	if before, err := r.Head(ctx); err == nil && before == tree {
		return "", ErrNothing
	}
	return tree, nil
}

// commitTree has HEAD be a commit of a tree, if it is still where it was.
func (r *Repo) commitTree(ctx context.Context, tree, head, message string) (string, error) {
	args := []string{"commit-tree", tree, "-F", "-"}
	if head != "" {
		args = append(args, "-p", head)
	}
	id, err := r.own(ctx, message+"\n", args...)
	var exit *ExitError
	if errors.As(err, &exit) && strings.Contains(exit.Stderr, "ident") {
		return "", fmt.Errorf("%w: %w", ErrNoIdentity, err)
	}
	if err != nil {
		return "", fmt.Errorf("make a commit: %w", err)
	}
	id = strings.TrimSpace(id)
	old := head
	if old == "" {
		old = strings.Repeat("0", len(id))
	}
	subject, _, _ := strings.Cut(message, "\n")
	_, err = r.own(ctx, "", "update-ref", "-m", "commit: "+subject, "HEAD", id, old)
	return id, err
}
