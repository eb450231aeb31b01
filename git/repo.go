package git

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
)

// Repo is the working tree of a repository. ductor sees it through a second git directory inside of the repository's own, which has
// an index of its own and attributes that turn off whatever changes a file's bytes on their way: what it restores is what was there,
// byte by byte. Objects go to the repository. Methods wait for each other; what one of them holds is held by its working tree.
type Repo struct {
	Top string // the directory of the working tree

	git      *Git
	launcher cli.Launcher
	in       cli.Sandbox
	gitDir   string
	objects  string
	mu       *sync.Mutex // of the working tree
	out      []string    // files that snapshots leave out, from one to the next
	off      []string    // settings of commands in it; nil before they are known
}

// Open finds the repository that a directory is in; orchestrator.ErrNoRepository if it is in none.
func (g *Git) Open(ctx context.Context, at Place) (*Repo, error) {
	launcher, err := g.envs.Launcher(at.In)
	if err != nil {
		return nil, err
	}
	out, err := execute(ctx, launcher, command{
		args: []string{"rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-path", "objects"},
		dir:  at.Dir, env: environment(settings("")), wait: wait, limit: 1 << 20,
	})
	var exit *ExitError
	if foreign := (*orchestrator.ForeignRepository)(nil); errors.As(err, &foreign) {
		return nil, err
	}
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%w: %w", orchestrator.ErrNoRepository, err)
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 3 { // a path with a line break
		return nil, fmt.Errorf("%w: its path has a line break", orchestrator.ErrNoRepository)
	}
	return &Repo{Top: lines[0], git: g, launcher: launcher, in: at.In, gitDir: lines[1], objects: lines[2], mu: g.lockOf(at.In, lines[1])}, nil
}

// lockOf is the lock of a working tree.
func (g *Git) lockOf(in cli.Sandbox, gitDir string) *sync.Mutex {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := string(in) + "\x00" + gitDir
	if g.locks[key] == nil {
		g.locks[key] = &sync.Mutex{}
	}
	return g.locks[key]
}

// own runs git in the repository itself.
func (r *Repo) own(ctx context.Context, input string, args ...string) (string, error) {
	names := ""
	if changes := []string{"update-ref", "reset"}; slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(changes, arg) }) {
		var err error
		if names, err = listed(ctx, r.launcher, r.Top); err != nil {
			return "", err
		}
	}
	return execute(ctx, r.launcher, command{args: quiet(args), dir: r.Top, env: environment(settings(names)), input: input, wait: r.patience(), limit: most})
}

// patience is how long one command may take.
func (r *Repo) patience() time.Duration { return 2 * time.Minute }

func (r *Repo) secondDir() string { return path.Join(r.gitDir, "ductor") }

// second runs git in the second git directory, with an index of it: "" for the one that stays.
func (r *Repo) second(ctx context.Context, index, input string, args ...string) (string, error) {
	if err := r.prepare(ctx); err != nil {
		return "", err
	}
	return r.run(ctx, r.off, index, input, args...)
}

func (r *Repo) run(ctx context.Context, off []string, index, input string, args ...string) (string, error) {
	env := append(environment(off), "GIT_DIR="+r.secondDir(), "GIT_WORK_TREE="+r.Top, "GIT_OBJECT_DIRECTORY="+r.objects, "GIT_LITERAL_PATHSPECS=1")
	if index != "" {
		env = append(env, "GIT_INDEX_FILE="+path.Join(r.secondDir(), index))
	}
	return execute(ctx, r.launcher, command{args: quiet(args), dir: r.Top, env: env, input: input, wait: r.patience(), limit: most})
}

// plain are the settings with which a file is what it is: with its mode and its links.
func plain(listed string) []string {
	return append(settings(listed), "core.bare", "false", "core.fileMode", "true", "core.symlinks", "true", "core.autocrlf", "false", "core.safecrlf", "false",
		"core.sparseCheckout", "false", "core.splitIndex", "false", "core.untrackedCache", "false", "core.trustctime", "true", "core.checkStat", "default",
		"core.precomposeUnicode", "false", "advice.addEmbeddedRepo", "false", "index.threads", "true", "core.logAllRefUpdates", "false")
}

// attributes of the second git directory come before those of the repository, its working tree and its user.
const attributes = "* -text -ident -filter -diff !eol !working-tree-encoding\n"

// prepare makes the second git directory where it is missing. One that came with the repository has settings too.
func (r *Repo) prepare(ctx context.Context) error {
	if r.off != nil {
		return nil
	}
	names, err := r.run(ctx, plain(""), "", "", "config", "--null", "--list", "--name-only")
	if err == nil {
		if _, err = r.run(ctx, plain(names), "", "", "rev-parse", "--verify", "-q", "refs/ductor/ready"); err == nil {
			r.off = plain(names)
			return nil
		}
	}
	return r.make(ctx, names)
}

func (r *Repo) make(ctx context.Context, names string) error {
	_, err := execute(ctx, r.launcher, command{
		args: []string{"init", "-q", "--bare", "--template=", r.secondDir()}, dir: r.Top, env: environment(settings(names)), wait: wait, limit: 1 << 20,
	})
	if err != nil {
		return fmt.Errorf("make a directory for snapshots: %w", err)
	}
	names, err = r.run(ctx, plain(names), "", "", "config", "--null", "--list", "--name-only")
	if err != nil {
		return err
	}
	off := plain(names)
	exclude, err := r.own(ctx, "", "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
	if err != nil {
		return err
	}
	blob, err := r.run(ctx, off, "", attributes, "hash-object", "-w", "--stdin", "--no-filters")
	if err != nil {
		return err
	}
	link, err := r.run(ctx, off, "", strings.TrimSuffix(exclude, "\n"), "hash-object", "-w", "--stdin", "--no-filters")
	if err != nil {
		return err
	}
	files := "100644 " + strings.TrimSpace(blob) + "\tinfo/attributes\x00120000 " + strings.TrimSpace(link) + "\tinfo/exclude\x00"
	if _, err := r.run(ctx, off, "start", files, "update-index", "-z", "--add", "--index-info"); err != nil {
		return err
	}
	if _, err := r.run(ctx, off, "start", "", "--work-tree="+r.secondDir(), "checkout-index", "-a", "-f", "-q"); err != nil {
		return err
	}
	if _, err := r.run(ctx, off, "", "", "update-ref", "refs/ductor/ready", strings.TrimSpace(blob)); err != nil {
		return err
	}
	r.off = off
	return nil
}
