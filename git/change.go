package git

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Change is a file that differs between two snapshots.
type Change struct {
	Path           string // relative to the working tree
	Old, New       Blob   // state of the file in both snapshots; see Blob.There for a missing file
	Added, Removed int    // number of lines; -1 for binary files
}

// Blob is the mode and the object ID of a file in a snapshot.
type Blob struct{ Mode, ID string }

// There reports whether the file exists.
func (b Blob) There() bool { return b.Mode != "000000" }

// Repository reports whether the Blob is a nested repository, such as a submodule, instead of a file. A snapshot does
// not contain the files of a nested repository.
func (b Blob) Repository() bool { return b.Mode == "160000" }

// Changes lists the differences between two trees, sorted by path. It lists a rename as a deletion and an addition.
func (r *Repo) Changes(ctx context.Context, from, to string) ([]Change, error) {
	if from == to {
		return nil, nil
	}
	listed, err := r.runOwn(ctx, "", "diff-tree", "-r", "-z", "--no-renames", "--raw", "--numstat", "--no-abbrev",
		from, to)
	if err != nil {
		return nil, fmt.Errorf("compare snapshots: %w", err)
	}
	return parseChanges(listed)
}

// parseChanges parses an output of diff-tree -z --raw --numstat. The output first lists all changes, each as two
// fields. The numbers of changed lines follow.
func parseChanges(listed string) (all []Change, err error) {
	places, fields := map[string]int{}, strings.Split(listed, "\x00")
	for ; len(fields) > 1 && strings.HasPrefix(fields[0], ":"); fields = fields[2:] {
		meta, name := strings.Fields(fields[0][1:]), fields[1]
		if len(meta) != 5 {
			return nil, fmt.Errorf("compare snapshots: git printed %q", fields[0])
		}
		places[name] = len(all)
		all = append(all, Change{Path: name, Old: Blob{meta[0], meta[2]}, New: Blob{meta[1], meta[3]}})
	}
	for _, line := range fields {
		added, rest, _ := strings.Cut(line, "\t")
		removed, name, ok := strings.Cut(rest, "\t")
		if i, known := places[name]; ok && known {
			all[i].Added, all[i].Removed = parseLineCount(added), parseLineCount(removed)
		}
	}
	return all, nil
}

func parseLineCount(count string) int {
	n, err := strconv.Atoi(count)
	if err != nil {
		return -1
	}
	return n
}

// DiffOptions configures Diff.
type DiffOptions struct {
	Path   string // a file or a directory; empty for all
	Prefix string // added before each path
	Limit  int64  // greatest size of the diff in bytes; Diff returns ErrTooMuch for a longer diff
}

// Diff returns the differences between two trees in unified format. It detects renames.
func (r *Repo) Diff(ctx context.Context, from, to string, o DiffOptions) (string, error) {
	args := []string{
		"--literal-pathspecs", "-c", "core.quotePath=false", "diff-tree", "-r", "-p", "-M", "--no-ext-diff",
		"--no-textconv", "--no-color", "--ignore-submodules=all",
		"--src-prefix=a/" + o.Prefix, "--dst-prefix=b/" + o.Prefix, from, to,
	}
	if o.Path != "" && o.Path != "." {
		args = append(args, "--", o.Path)
	}
	out, err := execute(ctx, r.launcher,
		command{args: args, dir: r.Top, env: gitEnv(safeSettings("")), timeout: r.timeout(), limit: o.Limit})
	if err != nil {
		return "", fmt.Errorf("compare snapshots: %w", err)
	}
	return out, nil
}

// Head returns the tree of HEAD, or the empty tree before the first commit.
func (r *Repo) Head(ctx context.Context) (string, error) {
	tree, err := r.runOwn(ctx, "", "rev-parse", "--verify", "-q", "HEAD^{tree}")
	var exit *ExitError
	if errors.As(err, &exit) {
		// Compute the ID of the empty tree. Git knows this tree, even if the repository has no object for it.
		tree, err = r.runOwn(ctx, "", "hash-object", "-t", "tree", "--stdin")
	}
	return strings.TrimSpace(tree), err
}

// Ignores reports whether the working tree contains ignored files.
func (r *Repo) Ignores(ctx context.Context) (bool, error) {
	out, err := r.runShadow(ctx, "", "", "ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory",
		"--no-empty-directory")
	return out != "", err
}
