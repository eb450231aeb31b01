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

// Limits of new files in a snapshot, in bytes. New files are in no commit.
const (
	maxNewFile  = 64 << 20 // size of a file; snapshots do not contain larger ones
	maxNewTotal = 1 << 30  // total size; Snapshot returns ErrTooLarge for more
)

// ErrTooLarge means that a snapshot would exceed maxNewTotal.
var ErrTooLarge = errors.New("the files that are in no commit are too large for a snapshot")

// Moment is the time of a snapshot: before or after a turn.
type Moment string

const (
	BeforeTurn Moment = "before"
	// A snapshot with AfterTurn also includes files that were in the snapshot before the turn and that the turn has
	// added to .gitignore.
	AfterTurn Moment = "after"
)

// Snapshot stores the current files as a tree and returns its ID. The tree contains all files that Git tracks or would
// add, with their modes, and links as links. It contains neither ignored files nor the contents of nested repositories;
// see Nested. Snapshot does not change HEAD, the index, the stash or the files.
func (r *Repo) Snapshot(ctx context.Context, when Moment) (tree string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.snapshot(ctx, when)
}

func (r *Repo) snapshot(ctx context.Context, when Moment) (tree string, err error) {
	if r.in != "" {
		r.shadow.settings = nil
	}
	tree, err = r.writeSnapshot(ctx, when)
	var exit *ExitError
	if errors.As(err, &exit) && strings.Contains(exit.Stderr, "invalid object") {
		// The index refers to objects that Git has deleted as unused. Empty the index, so that Git reads all files
		// again and creates these objects.
		if _, err := r.runShadow(ctx, "", "", "read-tree", "--empty"); err != nil {
			return "", fmt.Errorf("empty the index: %w", err)
		}
		tree, err = r.writeSnapshot(ctx, BeforeTurn)
	}
	return tree, err
}

func (r *Repo) writeSnapshot(ctx context.Context, when Moment) (tree string, err error) {
	if err := r.checkLinks(objectNames); err != nil {
		return "", err
	}
	if when == BeforeTurn {
		if err := r.syncTrackedIgnored(ctx); err != nil {
			return "", err
		}
	}
	listed, err := r.runShadow(ctx, "", "", "ls-files", "-t", "-s", "-z", "-c", "-o", "--exclude-standard")
	if err != nil {
		return "", fmt.Errorf("list files: %w", err)
	}
	nested, untracked := splitStatus(listed)
	out, err := r.findTooLarge(ctx, untracked)
	if err != nil {
		return "", err
	}
	r.excluded = append(r.excluded, out...)
	if err := r.removeNested(ctx, nested); err != nil {
		return "", fmt.Errorf("inspect files: %w", err)
	}
	for range maxUnborn {
		if err = r.addFiles(ctx, r.excluded); err == nil {
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

// removeNested removes nested repositories from the shadow directory's index. The next git add adds them again. If they
// stayed in the index, git add would run git status in them, and git status could run programs from their settings.
func (r *Repo) removeNested(ctx context.Context, nested string) error {
	if nested == "" {
		return nil
	}
	_, err := r.runShadow(ctx, "", nested, "update-index", "-z", "--force-remove", "--stdin")
	return err
}

// splitStatus returns the names of the nested repositories in the index, and the names of the files that are not in the
// index, in an output of ls-files -t -s -z -c -o. Each name ends with a zero byte.
func splitStatus(listed string) (nested, untracked string) {
	var index, others strings.Builder
	for line := range strings.SplitSeq(listed, "\x00") {
		tag, entry, _ := strings.Cut(line, " ")
		if tag == "?" {
			others.WriteString(entry + "\x00")
		} else if tag != "" {
			index.WriteString(entry + "\x00")
		}
	}
	_, nested = splitIndex(index.String())
	return nested, others.String()
}

// splitIndex returns the names of the files and of the nested repositories in an output of ls-files -s -z or of ls-tree
// -z. Each name ends with a zero byte.
func splitIndex(listed string) (files, nested string) {
	var of [2]strings.Builder
	for line := range strings.SplitSeq(listed, "\x00") {
		head, name, ok := strings.Cut(line, "\t")
		switch {
		case !ok:
		case strings.HasPrefix(head, "160000 "):
			of[1].WriteString(name + "\x00")
		default:
			of[0].WriteString(name + "\x00")
		}
	}
	return of[0].String(), of[1].String()
}

// addFiles updates the shadow directory's index to all current files except the excluded ones.
func (r *Repo) addFiles(ctx context.Context, excluded []string) error {
	args := []string{"--no-literal-pathspecs", "add", "-A", "--", "."}
	for _, name := range excluded {
		args = append(args, ":(exclude,top,literal)"+name)
	}
	_, err := r.runShadow(ctx, "", "", args...)
	if err == nil {
		return nil
	}
	// Only this process uses the index, so an existing index.lock comes from a Git process that was killed.
	if strings.Contains(err.Error(), "index.lock") {
		_, _ = execute(ctx, r.launcher, command{
			program: "rm", args: []string{"-f", path.Join(r.shadow.dir, "index.lock")}, dir: r.Top,
			env: gitEnv(safeSettings("")), timeout: commandTimeout, limit: 1 << 10,
		})
		_, err = r.runShadow(ctx, "", "", args...)
	}
	return err
}

// maxUnborn is the maximum number of nested repositories without a commit in a snapshot. Git cannot add such a
// repository, so Snapshot excludes one after the other and repeats the command.
const maxUnborn = 8

// unbornIn returns the path of a nested repository, if git add failed because this repository has no commit yet. It
// returns "" if git add failed for another reason.
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

// syncTrackedIgnored updates the index of the shadow directory. After the call, this index contains an ignored file
// only if the repository tracks the file. syncTrackedIgnored does not add nested repositories.
//
// To add a file, it copies the file's entry from the repository's index, because a directory or a link may have
// replaced the file in the working tree. addFiles then compares all files in the shadow directory's index with the
// working tree.
func (r *Repo) syncTrackedIgnored(ctx context.Context) error {
	const list = "ls-files -s -z -c -i --exclude-standard"
	listed, err := r.runOwn(ctx, "", strings.Fields(list)...)
	if err != nil {
		return fmt.Errorf("list tracked files that are ignored: %w", err)
	}
	theirs, _ := splitIndex(listed)
	inShadow, err := r.runShadow(ctx, "", "", strings.Fields(list)...)
	if err != nil {
		return fmt.Errorf("list snapshot files that are ignored: %w", err)
	}
	ours, _ := splitIndex(inShadow)
	if theirs == ours {
		return nil
	}
	if drop := subtract(ours, theirs); drop != "" {
		if _, err := r.runShadow(ctx, "", drop, "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return err
		}
	}
	if add := r.indexEntries(listed, subtract(theirs, ours)); add != "" {
		_, err = r.runShadow(ctx, "", add, "update-index", "-z", "--add", "--replace", "--index-info")
	}
	return err
}

// indexEntries returns an input of update-index --index-info that adds the files in names. listed is an output of
// ls-files -s -z. If a file has a conflict, update-index uses the last of its versions.
//
// indexEntries omits a name that now belongs to a directory. The directory could be an ignored repository. If the index
// contained its name, git add would add the repository.
func (r *Repo) indexEntries(listed, names string) string {
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(r.Top, name))
		wanted[name] = err != nil || !info.IsDir()
	}
	var out strings.Builder
	for line := range strings.SplitSeq(listed, "\x00") {
		head, name, ok := strings.Cut(line, "\t")
		if meta := strings.Fields(head); ok && len(meta) == 3 && wanted[name] {
			out.WriteString(meta[0] + " " + meta[1] + "\t" + name + "\x00")
		}
	}
	return out.String()
}

// subtract returns the names in list that are not in other. Each name ends with a zero byte.
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

// findTooLarge returns those of the new files that exceed maxNewFile. It returns ErrTooLarge if all other new files
// together exceed maxNewTotal. The name of each new file ends with a zero byte.
func (r *Repo) findTooLarge(ctx context.Context, listed string) (large []string, err error) {
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

// Touched reports whether the working tree has changed since the given time. It compares the modification times of all
// files that Git tracks or would add, and of their directories, whose time changes when a file is created or deleted.
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

// Nested lists the directories of the nested repositories in a snapshot, including submodules.
func (r *Repo) Nested(ctx context.Context, tree string) (dirs []string, err error) {
	listed, err := r.runOwn(ctx, "", "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return nil, fmt.Errorf("list repositories within: %w", err)
	}
	_, nested := splitIndex(listed)
	for name := range strings.SplitSeq(nested, "\x00") {
		if name != "" {
			dirs = append(dirs, path.Join(r.Top, name))
		}
	}
	return dirs, nil
}

// Keep creates a ref that prevents garbage collection from deleting the tree. The ref is neither a branch nor a tag.
func (r *Repo) Keep(ctx context.Context, name, tree string) error {
	_, err := r.writeOwn(ctx, "", "update-ref", refPrefix+name, tree)
	return err
}

// refPrefix is the prefix of the refs that Keep creates.
const refPrefix = "refs/ductor/"

// Kept returns the tree of a ref that Keep created. It returns "" if the ref does not exist.
func (r *Repo) Kept(ctx context.Context, name string) (string, error) {
	tree, err := r.runOwn(ctx, "", "rev-parse", "--verify", "-q", refPrefix+name)
	var exit *ExitError
	if errors.As(err, &exit) {
		return "", nil
	}
	return strings.TrimSpace(tree), err
}

// Forget deletes refs that Keep created. It ignores missing ones.
func (r *Repo) Forget(ctx context.Context, names ...string) error {
	var input strings.Builder
	for _, name := range names {
		input.WriteString("delete " + refPrefix + name + "\n")
	}
	_, err := r.writeOwn(ctx, input.String(), "update-ref", "--stdin")
	return err
}
