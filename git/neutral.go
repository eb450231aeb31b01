package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/orchestrator"
)

// neutral runs commands that convert the contents of files, such as add and read-tree -u. The commands use a Git
// directory of ductor instead of the repository's, because settings of the repository could name programs for the
// conversion. Listing and disabling these settings would not suffice on this host: an agent in a sandbox may write to
// the same repository, and can change the settings after ductor has listed them.
//
// neutral is only for this host. In a sandbox, Git can do nothing that the agents cannot do.
type neutral struct {
	launcher cli.Launcher
	dir      string   // Git directory of ductor; close removes it
	tree     string   // working tree
	index    string   // index file of the working tree
	sparse   []string // the repository's settings for a sparse checkout; only checkOut uses them
	env      []string
}

// conversions is a pattern for settings of a repository. They control how Git converts contents and modes, and which
// files Git ignores. neutral may use these settings, because none of them can name a program to run.
const conversions = `^core\.(autocrlf|eol|safecrlf|filemode|symlinks|ignorecase|precomposeunicode|` +
	`checkroundtripencoding|attributesfile|excludesfile)$`

const convertTimeout = 2 * time.Minute

// neutralFor creates a neutral for a working tree. The commands of the neutral use the objects of the repository to
// which the working tree belongs, and the repository's settings that match conversions. The caller must call close.
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
		"--git-path", "info/attributes", "--git-path", "info/exclude", "--git-path", "info/sparse-checkout",
		"--show-object-format")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 6 { // a path contains a line break
		return nil, fmt.Errorf("%w: its path has a line break", orchestrator.ErrNoRepository)
	}
	settings, sparse, err := conversionsOf(own)
	if err != nil {
		return nil, err
	}
	n := &neutral{launcher: launcher, tree: tree, index: lines[1], sparse: sparse}
	if n.dir, err = g.privateTemp(); err != nil {
		return nil, fmt.Errorf("create a neutral directory: %w", err)
	}
	if err = writeGitDir(n.dir, lines[5]); err == nil {
		err = n.copyInfo(lines[2:5])
	}
	if err == nil {
		place := []string{"GIT_DIR=" + n.dir, "GIT_OBJECT_DIRECTORY=" + lines[0]}
		n.env = append(gitEnv(safeSettings("")), place...)
		// This command lists only the settings of the user, because the settings of the repository do not apply in dir.
		var names string
		names, err = n.run(ctx, n.index, "", "config", "--null", "--list", "--name-only")
		safe := append(safeSettings(names), "core.splitIndex", "false", "core.untrackedCache", "false")
		n.env = append(gitEnv(append(safe, settings...)), place...)
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

// maxInfo limits the size in bytes of the files that readRegular reads.
const maxInfo = 16 << 20

// copyInfo copies files from the repository's directory info. Some of them may be missing. A copy is safe: it can name
// a filter, but only a setting can name the filter's program. copyInfo follows links, because some tools let several
// repositories share a file in info through links.
func (n *neutral) copyInfo(paths []string) error {
	for _, path := range paths {
		content, err := readRegular(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = rooted.ReplaceFile(filepath.Join(n.dir, "info", filepath.Base(path)), content, nil)
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", path, err)
		}
	}
	return nil
}

// readRegular reads and closes a regular file, which was opened with O_NONBLOCK. An agent may have replaced the file by a
// pipe, or by a link to an endless device. readRegular returns the error of opening the file, if there is one.
func readRegular(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxInfo {
		return nil, errors.New("it is too large, or not a regular file")
	}
	return io.ReadAll(io.LimitReader(f, maxInfo))
}

func (n *neutral) close() error { return os.RemoveAll(n.dir) }

// conversionsOf returns two lists of settings of a repository, as pairs of name and value: the settings that match the
// pattern conversions, and the settings of a sparse checkout.
func conversionsOf(own func(args ...string) (string, error)) (settings, sparse []string, err error) {
	listed, err := own("config", "--null", "--get-regexp", conversions+`|^core\.sparsecheckout(cone)?$`)
	if exit := (*ExitError)(nil); errors.As(err, &exit) && exit.Code == 1 { // Git exits with 1 if no setting matches
		return nil, nil, nil
	}
	for setting := range strings.SplitSeq(strings.TrimSuffix(listed, "\x00"), "\x00") {
		name, value, ok := strings.Cut(setting, "\n")
		switch {
		case name == "":
			continue
		case !ok: // in Git, a setting without a value is true
			value = "true"
		}
		if strings.HasPrefix(name, "core.sparsecheckout") {
			sparse = append(sparse, name, value)
		} else {
			settings = append(settings, name, value)
		}
	}
	return settings, sparse, err
}

// writeGitDir creates a bare Git directory, like git init. format is the object format of the repository whose objects
// the directory will use.
func writeGitDir(dir, format string) error {
	config := "[core]\n\trepositoryFormatVersion = 0\n\tbare = true\n"
	if format != "sha1" {
		config = "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = " + format + "\n"
	}
	for _, below := range []string{"objects", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, below), 0o700); err != nil {
			return err
		}
	}
	head := filepath.Join(dir, "HEAD")
	if err := os.WriteFile(head, []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, "head")); err == nil {
		config += "[core]\n\tignoreCase = true\n"
	}
	return os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600)
}

func (n *neutral) run(ctx context.Context, index, input string, args ...string) (string, error) {
	return execute(ctx, n.launcher,
		command{args: args, dir: n.tree,
			env:   append(slices.Clip(n.env), "GIT_WORK_TREE="+n.tree, "GIT_INDEX_FILE="+index),
			input: input, timeout: convertTimeout, limit: maxOutput})
}

// checkOut writes the files of HEAD into a new worktree without files.
//
// On this host, an agent in a sandbox can replace the worktree by a link at any time, and Git follows links in the path
// of a worktree. The agent can also write paths such as ../file into the index of the worktree. So Git writes the files
// and the index into directories of ductor, and checkOut copies them without following links.
func (g *Git) checkOut(ctx context.Context, at Place) (err error) {
	// In a sandbox, let Git write into the new worktree. Run must work in the worktree itself: it disables the programs
	// in the settings of its directory, and some settings may apply only to this worktree.
	if at.In != "" {
		_, err := g.Run(ctx, at, "reset", "--hard", "-q")
		return err
	}
	n, err := g.neutralFor(ctx, at.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	head, err := g.Run(ctx, at, "rev-parse", "--verify", "HEAD^{tree}")
	if err != nil {
		return err
	}
	files, err := g.privateTemp()
	if err != nil {
		return fmt.Errorf("create a directory for the files of a worktree: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
	staged, index := *n, filepath.Join(n.dir, "index")
	staged.tree = files
	var checkout []string
	for setting := range slices.Chunk(n.sparse, 2) {
		checkout = append(checkout, "-c", setting[0]+"="+setting[1])
	}
	checkout = append(checkout, "read-tree", "-m", "-u", strings.TrimSpace(head))
	if _, err := staged.run(ctx, index, "", checkout...); err != nil {
		return err
	}
	if err := copyFiles(ctx, files, at.Dir); err != nil {
		return fmt.Errorf("write the files of a worktree: %w", err)
	}
	// Write the modification times of the copies into the index, so that Git need not read the copies again.
	if _, err := n.run(ctx, index, "", "update-index", "-q", "--refresh"); err != nil {
		return err
	}
	gitDir, err := rooted.OpenDir(filepath.Dir(n.index))
	if err != nil {
		return fmt.Errorf("write the index of a worktree: %w", err)
	}
	defer gitDir.Close()
	return copyFile(index, gitDir, filepath.Base(n.index), 0o666)
}

// copyFiles copies the files and links of a directory into another one. It follows no links and replaces no files.
func copyFiles(ctx context.Context, from, to string) error {
	root, err := rooted.OpenDir(to)
	if err != nil {
		return err
	}
	defer root.Close()
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || path == from {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return root.Mkdir(name, info.Mode().Perm())
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return root.Symlink(target, name)
		}
		return copyFile(path, root, name, info.Mode().Perm())
	})
}

// copyFile copies a file to a new file below a directory.
func copyFile(from string, root *os.Root, name string, mode fs.FileMode) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
