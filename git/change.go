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
	Old, New       Blob   // without a mode: it is not there
	Added, Removed int    // lines; -1 of a file that is no text
}

// Blob is what a snapshot has of a file.
type Blob struct{ Mode, ID string }

// There says whether the file is there.
func (b Blob) There() bool { return b.Mode != "000000" }

// Repository says whether it is a repository within, whose files are no part of the snapshot.
func (b Blob) Repository() bool { return b.Mode == "160000" }

// Changes lists what differs from one tree to another, by path. A renamed file is one that went and one that came.
func (r *Repo) Changes(ctx context.Context, from, to string) ([]Change, error) {
	if from == to {
		return nil, nil
	}
	raw, err := r.own(ctx, "", "diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev", from, to)
	if err != nil {
		return nil, fmt.Errorf("compare snapshots: %w", err)
	}
	all, places, fields := []Change(nil), map[string]int{}, strings.Split(raw, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		meta := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(meta) != 5 {
			return nil, fmt.Errorf("compare snapshots: git printed %q", fields[i])
		}
		places[fields[i+1]] = len(all)
		all = append(all, Change{Path: fields[i+1], Old: Blob{meta[0], meta[2]}, New: Blob{meta[1], meta[3]}})
	}
	counted, err := r.own(ctx, "", "diff-tree", "-r", "-z", "--no-renames", "--numstat", from, to)
	if err != nil {
		return nil, fmt.Errorf("count changed lines: %w", err)
	}
	for line := range strings.SplitSeq(counted, "\x00") {
		added, rest, _ := strings.Cut(line, "\t")
		removed, name, ok := strings.Cut(rest, "\t")
		if i, known := places[name]; ok && known {
			all[i].Added, all[i].Removed = lines(added), lines(removed)
		}
	}
	return all, nil
}

func lines(count string) int {
	n, err := strconv.Atoi(count)
	if err != nil {
		return -1
	}
	return n
}

// DiffOptions say what of a diff is wanted.
type DiffOptions struct {
	Path   string // a file or a directory; empty for all
	Prefix string // before each path
	Limit  int64  // of bytes; more is ErrTooMuch
}

// Diff gives what differs from one tree to another in unified form, renamed files as such.
func (r *Repo) Diff(ctx context.Context, from, to string, o DiffOptions) (string, error) {
	args := []string{
		"--literal-pathspecs", "-c", "core.quotePath=false", "diff-tree", "-r", "-p", "-M", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all",
		"--src-prefix=a/" + o.Prefix, "--dst-prefix=b/" + o.Prefix, from, to,
	}
	if o.Path != "" && o.Path != "." {
		args = append(args, "--", o.Path)
	}
	out, err := execute(ctx, r.launcher, command{args: args, dir: r.Top, env: environment(settings("")), wait: r.patience(), limit: o.Limit})
	if err != nil {
		return "", fmt.Errorf("compare snapshots: %w", err)
	}
	return out, nil
}

// Head gives the tree of the commit that is checked out; the empty tree where there is none.
func (r *Repo) Head(ctx context.Context) (string, error) {
	tree, err := r.own(ctx, "", "rev-parse", "--verify", "-q", "HEAD^{tree}")
	var exit *ExitError
	if errors.As(err, &exit) {
		tree, err = r.own(ctx, "", "hash-object", "-t", "tree", "-w", "--stdin")
	}
	return strings.TrimSpace(tree), err
}

// Ignores says whether there are ignored files.
func (r *Repo) Ignores(ctx context.Context) (bool, error) {
	out, err := r.second(ctx, "", "", "ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory", "--no-empty-directory")
	return out != "", err
}
