package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Bounds of what a snapshot stores of files that no commit has.
const (
	largestNew = 64 << 20 // of one file; a larger one is left out
	mostNew    = 1 << 30  // of all
)

// ErrTooLarge says that a snapshot would store too much.
var ErrTooLarge = errors.New("the files that are in no commit are too large for a snapshot")

// End is an end of a turn.
type End string

// The ends of a turn.
const (
	BeforeTurn End = "before"
	AfterTurn  End = "after" // what was there before the turn is still looked at, though the turn had it ignored
)

// Snapshot stores all files as they are, and gives the tree: those that git has or would add, with their modes, links as links. Neither
// HEAD nor the index, the stash or any file changes. It leaves out ignored files, and what is inside of repositories within; see Nested.
func (r *Repo) Snapshot(ctx context.Context, when End) (tree string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.snapshot(ctx, when)
}

func (r *Repo) snapshot(ctx context.Context, when End) (tree string, err error) {
	if when == BeforeTurn {
		if err := r.agree(ctx); err != nil {
			return "", err
		}
	}
	out, err := r.leftOut(ctx)
	if err != nil {
		return "", err
	}
	r.out = append(r.out, out...)
	for range mostUnborn {
		if err = r.addAll(ctx, r.out); err == nil {
			break
		}
		unborn := unbornIn(err)
		if unborn == "" || slices.Contains(r.out, unborn) {
			return "", fmt.Errorf("look at the files: %w", err)
		}
		r.out = append(r.out, unborn)
	}
	if err != nil {
		return "", fmt.Errorf("look at the files: %w", err)
	}
	tree, err = r.second(ctx, "", "", "write-tree")
	if err != nil {
		return "", fmt.Errorf("store a snapshot: %w", err)
	}
	return strings.TrimSpace(tree), nil
}

// addAll has the index have the files as they are, but those that are left out.
func (r *Repo) addAll(ctx context.Context, out []string) error {
	args := []string{"--no-literal-pathspecs", "add", "-A", "--", "."}
	for _, name := range out {
		args = append(args, ":(exclude,top,literal)"+name)
	}
	_, err := r.second(ctx, "", "", args...)
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), "index.lock") { // of a process that was killed: nothing else writes here
		_, _ = execute(ctx, r.launcher, command{
			program: "rm", args: []string{"-f", path.Join(r.secondDir(), "index.lock")}, dir: r.Top, env: environment(settings("")), wait: wait, limit: 1 << 10,
		})
		_, err = r.second(ctx, "", "", args...)
	}
	return err
}

// mostUnborn bounds the repositories within that have no commit: git adds none of them, and nothing beside them.
const mostUnborn = 8

// unbornIn names the repository without a commit that git could not add.
func unbornIn(err error) string {
	var exit *ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	_, rest, ok := strings.Cut(exit.Stderr, "error: '")
	name, _, found := strings.Cut(rest, "' does not have a commit checked out")
	if !ok || !found {
		return ""
	}
	return strings.TrimSuffix(name, "/")
}

// agree has the index of snapshots track what the repository does among what is ignored, and nothing else of that.
func (r *Repo) agree(ctx context.Context) error {
	const list = "ls-files -z -c -i --exclude-standard"
	theirs, err := r.own(ctx, "", strings.Fields(list)...)
	if err != nil {
		return fmt.Errorf("list what is tracked and ignored: %w", err)
	}
	ours, err := r.second(ctx, "", "", strings.Fields(list)...)
	if err != nil {
		return fmt.Errorf("list what a snapshot has and is ignored: %w", err)
	}
	if theirs == ours {
		return nil
	}
	if drop := without(ours, theirs); drop != "" {
		if _, err := r.second(ctx, "", drop, "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return err
		}
	}
	if add := without(theirs, ours); add != "" {
		_, err = r.second(ctx, "", add, "update-index", "-z", "--add", "--remove", "--stdin")
	}
	return err
}

// without gives the names of one list, each ended by a zero byte, that another one lacks.
func without(list, other string) string {
	has := map[string]bool{}
	for name := range strings.SplitSeq(other, "\x00") {
		has[name] = true
	}
	var out strings.Builder
	for name := range strings.SplitSeq(list, "\x00") {
		if name != "" && !has[name] {
			out.WriteString(name + "\x00")
		}
	}
	return out.String()
}

// leftOut names the new files that are too large for a snapshot.
func (r *Repo) leftOut(ctx context.Context) (large []string, err error) {
	listed, err := r.second(ctx, "", "", "ls-files", "-z", "-o", "--exclude-standard")
	if err != nil {
		return nil, fmt.Errorf("list new files: %w", err)
	}
	var sum int64
	for name := range strings.SplitSeq(listed, "\x00") {
		info, err := os.Lstat(filepath.Join(r.Top, name))
		switch {
		case name == "" || err != nil || !info.Mode().IsRegular() || slices.Contains(r.out, name):
		case info.Size() > largestNew:
			large = append(large, name)
		default:
			sum += info.Size()
		}
	}
	if sum > mostNew {
		if committed, err := r.own(ctx, "", "ls-files", "-z"); err != nil || r.sizeOf(without(listed, committed)) > mostNew {
			return nil, errors.Join(ErrTooLarge, err)
		}
	}
	return large, nil
}

func (r *Repo) sizeOf(names string) (sum int64) {
	for name := range strings.SplitSeq(names, "\x00") {
		if info, err := os.Lstat(filepath.Join(r.Top, name)); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum
}

// Touched reports whether a file that git has or would add was written since a moment, or one was made or deleted beside it.
func (r *Repo) Touched(ctx context.Context, since time.Time) (bool, error) {
	listed, err := r.own(ctx, "", "ls-files", "-z", "-c", "-o", "--exclude-standard")
	if err != nil {
		return false, fmt.Errorf("list files: %w", err)
	}
	if _, err := os.Lstat(r.Top); err != nil {
		return false, fmt.Errorf("look at the files: %w", err)
	}
	seen := map[string]bool{}
	for name := range strings.SplitSeq(listed, "\x00") {
		for name = path.Clean(name); !seen[name]; name = path.Dir(name) {
			seen[name] = true
			if info, err := os.Lstat(filepath.Join(r.Top, name)); err == nil && info.ModTime().After(since) {
				return true, nil
			}
		}
	}
	return false, nil
}

// Nested lists the repositories within that a snapshot names: submodules that are checked out, and others.
func (r *Repo) Nested(ctx context.Context, tree string) (dirs []string, err error) {
	listed, err := r.own(ctx, "", "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return nil, fmt.Errorf("list repositories within: %w", err)
	}
	for line := range strings.SplitSeq(listed, "\x00") {
		if head, name, ok := strings.Cut(line, "\t"); ok && strings.HasPrefix(head, "160000 ") {
			dirs = append(dirs, path.Join(r.Top, name))
		}
	}
	return dirs, nil
}

// Keep has a ref hold a tree, out of sight of what lists branches and tags.
func (r *Repo) Keep(ctx context.Context, name, tree string) error {
	_, err := r.own(ctx, "", "update-ref", refs+name, tree)
	return err
}

// refs is where snapshots are.
const refs = "refs/ductor/"

// Kept gives the tree that a ref holds; empty if there is none.
func (r *Repo) Kept(ctx context.Context, name string) (string, error) {
	tree, err := r.own(ctx, "", "rev-parse", "--verify", "-q", refs+name)
	var exit *ExitError
	if errors.As(err, &exit) {
		return "", nil
	}
	return strings.TrimSpace(tree), err
}

// Forget deletes refs; those that are not there are passed over.
func (r *Repo) Forget(ctx context.Context, names ...string) error {
	var input strings.Builder
	for _, name := range names {
		input.WriteString("delete " + refs + name + "\n")
	}
	_, err := r.own(ctx, input.String(), "update-ref", "--stdin")
	return err
}
