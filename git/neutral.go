package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/orchestrator"
)

// neutral runs commands that convert the contents of files, such as add and checkout-index, in a Git directory of
// ductor. Settings of the repository then cannot name programs for the conversion. Listing and disabling these settings
// would not suffice on this host: an agent in a sandbox may write to the same repository, and can change the settings
// after ductor has listed them.
//
// neutral is only for this host. In a sandbox, Git has no more rights than the agents.
type neutral struct {
	launcher cli.Launcher
	dir      string // Git directory of ductor; close removes it
	tree     string // working tree
	index    string // index file of the working tree
	exclude  string // file info/exclude of the repository, which may be missing
	env      []string
}

// conversions is a pattern for the settings of a repository that control how Git converts contents and modes, and which
// files it ignores. They name no programs.
const conversions = `^core\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode|` +
	`checkroundtripencoding|attributesfile|excludesfile)$`

const convertTimeout = 2 * time.Minute

// neutralFor prepares commands for a working tree. It uses the objects and the conversions of the repository to which
// the working tree belongs. The caller must call close.
func (g *Git) neutralFor(ctx context.Context, tree string) (*neutral, error) {
	launcher, err := g.envs.Launcher("")
	if err != nil {
		return nil, err
	}
	own := func(args ...string) (string, error) {
		return execute(ctx, launcher,
			command{args: args, dir: tree, env: gitEnv(safeSettings("")), timeout: commandTimeout, limit: 1 << 20})
	}
	out, err := own("rev-parse", "--path-format=absolute", "--git-path", "objects", "--git-path", "index",
		"--git-path", "info/exclude", "--show-object-format")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 4 { // a path contains a line break
		return nil, fmt.Errorf("%w: its path has a line break", orchestrator.ErrNoRepository)
	}
	listed, err := own("config", "--null", "--get-regexp", conversions)
	if exit := (*ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.Code == 1) { // 1: no such settings
		return nil, err
	}
	n := &neutral{launcher: launcher, tree: tree, index: lines[1], exclude: lines[2]}
	if n.dir, err = g.privateTemp(); err != nil {
		return nil, fmt.Errorf("create a neutral directory: %w", err)
	}
	_, err = own("init", "-q", "--bare", "--template=", "--object-format="+lines[3], n.dir)
	if err == nil {
		place := []string{"GIT_DIR=" + n.dir, "GIT_OBJECT_DIRECTORY=" + lines[0]}
		n.env = append(gitEnv(safeSettings("")), place...)
		// This command lists only the settings of the user, because the settings of the repository do not apply in dir.
		var names string
		names, err = n.run(ctx, n.index, "", "config", "--null", "--list", "--name-only")
		n.env = append(gitEnv(append(safeSettings(names), settingsIn(listed)...)), place...)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create a neutral directory: %w", err), n.close())
	}
	return n, nil
}

// privateTemp creates a directory in which no other command works. The caller removes it. If ductor is killed before,
// removeUnused deletes the directory later.
func (g *Git) privateTemp() (string, error) {
	if err := os.MkdirAll(g.private, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(g.private, "neutral-")
}

func (n *neutral) close() error { return os.RemoveAll(n.dir) }

// settingsIn parses an output of git config --null --get-regexp. It returns pairs of name and value.
func settingsIn(listed string) (pairs []string) {
	for setting := range strings.SplitSeq(strings.TrimSuffix(listed, "\x00"), "\x00") {
		if name, value, ok := strings.Cut(setting, "\n"); ok {
			pairs = append(pairs, name, value)
		} else if name != "" { // in Git, a setting without a value is true
			pairs = append(pairs, name, "true")
		}
	}
	return pairs
}

func (n *neutral) run(ctx context.Context, index, input string, args ...string) (string, error) {
	return execute(ctx, n.launcher,
		command{args: args, dir: n.tree,
			env:   append(slices.Clip(n.env), "GIT_WORK_TREE="+n.tree, "GIT_INDEX_FILE="+index),
			input: input, timeout: convertTimeout, limit: maxOutput})
}

// checkOut writes the files of HEAD into a new worktree without files.
func (g *Git) checkOut(ctx context.Context, at Place) (err error) {
	// Run Git in the new worktree, because some settings may apply only there. Run disables only the settings of the
	// directory in which it runs.
	if at.In != "" {
		_, err := g.Run(ctx, at, "reset", "--hard", "-q")
		return err
	}
	n, err := g.neutralFor(ctx, at.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if real, err := rooted.RealPath(n.index); err != nil || real != n.index {
		return orchestrator.ErrOutsideRoot
	}
	if _, err := g.Run(ctx, at, "read-tree", "-m", "HEAD"); err != nil {
		return err
	}
	_, err = n.run(ctx, n.index, "", "checkout-index", "--all", "--force", "--index", "--quiet")
	return err
}
