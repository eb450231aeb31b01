package git

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// blockingAfter is the time after which endIfBlocked searches for a pipe. Most commands of Git need less time, and the
// search reads all directories of a working tree.
const blockingAfter = 2 * time.Second

// endIfBlocked returns a context for a command of Git in a working tree on this host. The context ends with
// orchestrator.ErrBlocking if the command still runs after blockingAfter, and the repository has a pipe in place of a
// file that Git reads. Git would wait for the pipe until the end of its time limit, and all other commands in the
// working tree too.
//
// The caller must call stop after the command.
func endIfBlocked(ctx context.Context, l cli.Launcher, tree string) (limited context.Context, stop func()) {
	limited, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	search := time.AfterFunc(blockingAfter, func() {
		defer close(done)
		if path := blockingFile(limited, l, tree); path != "" {
			cancel(fmt.Errorf("%w: %s", orchestrator.ErrBlocking, path))
		}
	})
	return limited, func() {
		cancel(nil)
		if !search.Stop() {
			<-done
		}
	}
}

// blockingFile returns a pipe that Git may read in a working tree as a file with patterns, or "".
func blockingFile(ctx context.Context, l cli.Launcher, tree string) (found string) {
	for _, path := range patternFiles(ctx, l, tree) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(tree, path)
		}
		if info, err := os.Stat(path); err == nil && isPipe(info.Mode()) {
			return path
		}
	}
	// The callback ignores errors: Git cannot read such a directory either.
	_ = filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
		case entry.Name() == ".git" && entry.IsDir():
			return fs.SkipDir
		case slices.Contains(patternNames(), entry.Name()) && isPipe(entry.Type()):
			found = path
			return fs.SkipAll
		}
		return nil
	})
	return found
}

func isPipe(mode fs.FileMode) bool { return mode&fs.ModeNamedPipe != 0 }

// patternNames lists the files of a working tree from which Git reads patterns and settings.
func patternNames() []string { return []string{".gitignore", ".gitattributes", ".gitmodules"} }

// patternFiles returns the files outside of the working tree that a repository uses for attributes and ignored files.
func patternFiles(ctx context.Context, l cli.Launcher, tree string) []string {
	own := func(args ...string) string {
		out, _ := execute(ctx, l, command{
			args: args, dir: tree, env: gitEnv(safeSettings("")), timeout: commandTimeout, limit: 1 << 20,
		})
		return out // after an error, there are no such files, or Git cannot work in the repository anyway
	}
	paths := strings.Split(own("rev-parse", "--git-path", "info/exclude", "--git-path", "info/attributes"), "\n")
	for _, name := range []string{"core.excludesFile", "core.attributesFile"} {
		named := own("config", "--null", "--type=path", "--get-all", name)
		paths = append(paths, strings.Split(named, "\x00")...)
	}
	return paths
}
