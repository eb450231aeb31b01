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

// Limits of uncommitted data in a snapshot.
const (
	maxNewFile  = 64 << 20 // bytes of one file; larger files are excluded
	maxNewTotal = 1 << 30  // bytes of all files
)

// ErrTooLarge means that a snapshot would exceed maxNewTotal.
var ErrTooLarge = errors.New("the files that are in no commit are too large for a snapshot")

// Moment is the time of a snapshot: before or after a turn.
type Moment string

const (
	BeforeTurn Moment = "before"
	// AfterTurn includes files that were visible before the turn, even if the turn added them to .gitignore.
	AfterTurn Moment = "after"
)

// Snapshot stores the current files and returns their tree: all files that git tracks or would add, with their modes,
// and links as links. HEAD, the index, the stash and the files stay unchanged. Ignored files and the contents of nested
// repositories are not included; see Nested.
func (r *Repo) Snapshot(ctx context.Context, when Moment) (tree string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.snapshot(ctx, when)
}

func (r *Repo) snapshot(ctx context.Context, when Moment) (tree string, err error) {
	if when == BeforeTurn {
		if err := r.syncTrackedIgnored(ctx); err != nil {
			return "", err
		}
	}
	out, err := r.findTooLarge(ctx)
	if err != nil {
		return "", err
	}
	r.excluded = append(r.excluded, out...)
	for range maxUnborn {
		if err = r.addAll(ctx, r.excluded); err == nil {
			break
		}
		unborn := unbornIn(err)
		if unborn == "" || slices.Contains(r.excluded, unborn) {
			return "", fmt.Errorf("inspect files: %w", err)
		}
		r.excluded = append(r.excluded, unborn)
	}
	if err != nil {
		return "", fmt.Errorf("inspect files: %w", err)
	}
	tree, err = r.runShadow(ctx, "", "", "write-tree")
	if err != nil {
		return "", fmt.Errorf("store a snapshot: %w", err)
	}
	return strings.TrimSpace(tree), nil
}

// addAll updates the shadow index with all current files except the excluded ones.
func (r *Repo) addAll(ctx context.Context, out []string) error {
	args := []string{"--no-literal-pathspecs", "add", "-A", "--", "."}
	for _, name := range out {
		args = append(args, ":(exclude,top,literal)"+name)
	}
	_, err := r.runShadow(ctx, "", "", args...)
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), "index.lock") { // left by a killed process: no other process writes this index
		_, _ = execute(ctx, r.launcher, command{
			program: "rm", args: []string{"-f", path.Join(r.shadowDir(), "index.lock")}, dir: r.Top,
			env: gitEnv(safeSettings("")), timeout: commandTimeout, limit: 1 << 10,
		})
		_, err = r.runShadow(ctx, "", "", args...)
	}
	return err
}

// maxUnborn limits the number of nested repositories without a commit. Git refuses to add such a repository, and
// everything else in the same command.
const maxUnborn = 8

// unbornIn returns the nested repository that made git add fail because it has no commit. It returns "" if the error
// has another cause.
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

// syncTrackedIgnored makes the shadow index track exactly those ignored files that the repository tracks.
func (r *Repo) syncTrackedIgnored(ctx context.Context) error {
	const list = "ls-files -z -c -i --exclude-standard"
	theirs, err := r.runOwn(ctx, "", strings.Fields(list)...)
	if err != nil {
		return fmt.Errorf("list tracked files that are ignored: %w", err)
	}
	ours, err := r.runShadow(ctx, "", "", strings.Fields(list)...)
	if err != nil {
		return fmt.Errorf("list snapshot files that are ignored: %w", err)
	}
	if theirs == ours {
		return nil
	}
	if drop := subtract(ours, theirs); drop != "" {
		if _, err := r.runShadow(ctx, "", drop, "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return err
		}
	}
	if add := subtract(theirs, ours); add != "" {
		_, err = r.runShadow(ctx, "", add, "update-index", "-z", "--add", "--remove", "--stdin")
	}
	return err
}

// subtract returns the names that are in list but not in other. Each name is terminated by a zero byte.
func subtract(list, other string) string {
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

// findTooLarge returns the new files that are too large for a snapshot. It returns ErrTooLarge if the uncommitted files
// together exceed maxNewTotal.
func (r *Repo) findTooLarge(ctx context.Context) (large []string, err error) {
	listed, err := r.runShadow(ctx, "", "", "ls-files", "-z", "-o", "--exclude-standard")
	if err != nil {
		return nil, fmt.Errorf("list new files: %w", err)
	}
	var sum int64
	for name := range strings.SplitSeq(listed, "\x00") {
		info, err := os.Lstat(filepath.Join(r.Top, name))
		switch {
		case name == "" || err != nil || !info.Mode().IsRegular() || slices.Contains(r.excluded, name):
		case info.Size() > maxNewFile:
			large = append(large, name)
		default:
			sum += info.Size()
		}
	}
	if sum > maxNewTotal {
		if committed, err := r.runOwn(ctx, "", "ls-files", "-z"); err != nil ||
			r.totalSize(subtract(listed, committed)) > maxNewTotal {
			return nil, errors.Join(ErrTooLarge, err)
		}
	}
	return large, nil
}

func (r *Repo) totalSize(names string) (sum int64) {
	for name := range strings.SplitSeq(names, "\x00") {
		if info, err := os.Lstat(filepath.Join(r.Top, name)); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum
}

// Touched reports whether the working tree changed after since. It compares the modification times of all files that
// git tracks or would add, and of their directories. The time of a directory changes if an entry is created or deleted.
func (r *Repo) Touched(ctx context.Context, since time.Time) (bool, error) {
	listed, err := r.runOwn(ctx, "", "ls-files", "-z", "-c", "-o", "--exclude-standard")
	if err != nil {
		return false, fmt.Errorf("list files: %w", err)
	}
	if _, err := os.Lstat(r.Top); err != nil {
		return false, fmt.Errorf("inspect files: %w", err)
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

// Nested lists the nested repositories in a snapshot: initialized submodules and others.
func (r *Repo) Nested(ctx context.Context, tree string) (dirs []string, err error) {
	listed, err := r.runOwn(ctx, "", "ls-tree", "-r", "-z", "--full-tree", tree)
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

// Keep creates a ref that protects a tree from garbage collection. Commands that list branches and tags do not show it.
func (r *Repo) Keep(ctx context.Context, name, tree string) error {
	_, err := r.runOwn(ctx, "", "update-ref", refPrefix+name, tree)
	return err
}

// refPrefix precedes the names of snapshots.
const refPrefix = "refs/ductor/"

// Kept returns the tree that Keep stored under a name, or "" if there is none.
func (r *Repo) Kept(ctx context.Context, name string) (string, error) {
	tree, err := r.runOwn(ctx, "", "rev-parse", "--verify", "-q", refPrefix+name)
	var exit *ExitError
	if errors.As(err, &exit) {
		return "", nil
	}
	return strings.TrimSpace(tree), err
}

// Forget deletes refs. It ignores missing ones.
func (r *Repo) Forget(ctx context.Context, names ...string) error {
	var input strings.Builder
	for _, name := range names {
		input.WriteString("delete " + refPrefix + name + "\n")
	}
	_, err := r.runOwn(ctx, input.String(), "update-ref", "--stdin")
	return err
}
