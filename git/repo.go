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

// Repo is the working tree of a repository. Its methods are safe for concurrent use: all Repos of a working tree share
// a lock.
//
// For snapshots, ductor uses a second Git directory, called the shadow directory, inside the repository's Git
// directory. The shadow directory has its own index, and attributes that disable all conversions of file contents. A
// restored file is therefore identical to the original, byte by byte. The objects of snapshots are stored in the
// repository.
type Repo struct {
	Top string // top directory of the working tree

	git            *Git
	launcher       cli.Launcher
	in             cli.Sandbox
	gitDir         string
	objects        string
	mu             *sync.Mutex // shared by all Repos of this working tree
	excluded       []string    // paths that snapshots do not contain; a snapshot can add more
	shadowSettings []string    // settings for commands in the shadow directory; nil before prepareShadow
}

// Open opens the repository that contains a directory. It returns orchestrator.ErrNoRepository if there is none.
func (g *Git) Open(ctx context.Context, at Place) (*Repo, error) {
	launcher, err := g.envs.Launcher(at.In)
	if err != nil {
		return nil, err
	}
	out, err := execute(ctx, launcher, command{
		args: []string{"rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-path",
			"objects"},
		dir: at.Dir, env: gitEnv(safeSettings("")), timeout: commandTimeout, limit: 1 << 20,
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
	if len(lines) != 3 { // a path contains a line break
		return nil, fmt.Errorf("%w: its path has a line break", orchestrator.ErrNoRepository)
	}
	return &Repo{Top: lines[0], git: g, launcher: launcher, in: at.In, gitDir: lines[1], objects: lines[2],
		mu: g.lockOf(at.In, lines[1])}, nil
}

func (g *Git) lockOf(in cli.Sandbox, gitDir string) *sync.Mutex {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := string(in) + "\x00" + gitDir
	if g.locks[key] == nil {
		g.locks[key] = &sync.Mutex{}
	}
	return g.locks[key]
}

// runOwn runs Git in the repository itself, not in the shadow directory.
func (r *Repo) runOwn(ctx context.Context, input string, args ...string) (string, error) {
	names := ""
	if changes := []string{"update-ref", "reset"}; slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(changes, arg) }) {
		var err error
		if names, err = listSettingNames(ctx, r.launcher, r.Top); err != nil {
			return "", err
		}
	}
	return execute(ctx, r.launcher,
		command{args: hardenArgs(args), dir: r.Top, env: gitEnv(safeSettings(names)), input: input,
			timeout: r.timeout(), limit: maxOutput})
}

func (r *Repo) timeout() time.Duration { return 2 * time.Minute }

func (r *Repo) shadowDir() string { return path.Join(r.gitDir, "ductor") }

// runShadow runs Git in the shadow directory. It uses the shadow directory's index file with the given name, or the
// default index file if the name is empty.
func (r *Repo) runShadow(ctx context.Context, index, input string, args ...string) (string, error) {
	if err := r.prepareShadow(ctx); err != nil {
		return "", err
	}
	return r.runShadowWith(ctx, r.shadowSettings, index, input, args...)
}

func (r *Repo) runShadowWith(ctx context.Context, off []string, index, input string, args ...string) (string, error) {
	env := append(gitEnv(off), "GIT_DIR="+r.shadowDir(), "GIT_WORK_TREE="+r.Top, "GIT_OBJECT_DIRECTORY="+r.objects,
		"GIT_LITERAL_PATHSPECS=1")
	if index != "" {
		env = append(env, "GIT_INDEX_FILE="+path.Join(r.shadowDir(), index))
	}
	return execute(ctx, r.launcher,
		command{args: hardenArgs(args), dir: r.Top, env: env, input: input, timeout: r.timeout(), limit: maxOutput})
}

// exactSettings returns the settings of safeSettings, and further settings that prevent Git from converting contents,
// modes and links.
func exactSettings(listed string) []string {
	return append(safeSettings(listed), "core.bare", "false", "core.fileMode", "true", "core.symlinks", "true",
		"core.autocrlf", "false", "core.safecrlf", "false",
		"core.sparseCheckout", "false", "core.splitIndex", "false", "core.untrackedCache", "false", "core.trustctime",
		"true", "core.checkStat", "default",
		"core.precomposeUnicode", "false", "advice.addEmbeddedRepo", "false", "index.threads", "true",
		"core.logAllRefUpdates", "false")
}

// attributes is the attributes file of the shadow directory. It has priority over all other attributes.
const attributes = "* -text -ident -filter -diff !eol !working-tree-encoding\n"

// prepareShadow creates the shadow directory if it does not exist. The creator of the repository may already have
// created the directory to make ductor run a program. runShadow therefore also disables all programs in the settings of
// the shadow directory.
func (r *Repo) prepareShadow(ctx context.Context) error {
	if r.shadowSettings != nil {
		return nil
	}
	names, err := r.runShadowWith(ctx, exactSettings(""), "", "", "config", "--null", "--list", "--name-only")
	if err == nil {
		if _, err = r.runShadowWith(ctx, exactSettings(names), "", "", "rev-parse", "--verify", "-q", "refs/ductor/ready"); err == nil {
			r.shadowSettings = exactSettings(names)
			return nil
		}
	}
	return r.createShadow(ctx, names)
}

func (r *Repo) createShadow(ctx context.Context, names string) error {
	_, err := execute(ctx, r.launcher, command{
		args: []string{"init", "-q", "--bare", "--template=", r.shadowDir()}, dir: r.Top,
		env: gitEnv(safeSettings(names)), timeout: commandTimeout, limit: 1 << 20,
	})
	if err != nil {
		return fmt.Errorf("create a directory for snapshots: %w", err)
	}
	names, err = r.runShadowWith(ctx, exactSettings(names), "", "", "config", "--null", "--list", "--name-only")
	if err != nil {
		return err
	}
	off := exactSettings(names)
	exclude, err := r.runOwn(ctx, "", "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
	if err != nil {
		return err
	}
	blob, err := r.runShadowWith(ctx, off, "", attributes, "hash-object", "-w", "--stdin", "--no-filters")
	if err != nil {
		return err
	}
	link, err := r.runShadowWith(ctx, off, "", strings.TrimSuffix(exclude, "\n"), "hash-object", "-w", "--stdin",
		"--no-filters")
	if err != nil {
		return err
	}
	files := "100644 " + strings.TrimSpace(blob) + "\tinfo/attributes\x00120000 " + strings.TrimSpace(link) +
		"\tinfo/exclude\x00"
	if _, err := r.runShadowWith(ctx, off, "start", files, "update-index", "-z", "--add", "--index-info"); err != nil {
		return err
	}
	if _, err := r.runShadowWith(ctx, off, "start", "", "--work-tree="+r.shadowDir(), "checkout-index", "-a", "-f", "-q"); err != nil {
		return err
	}
	if _, err := r.runShadowWith(ctx, off, "", "", "update-ref", "refs/ductor/ready", strings.TrimSpace(blob)); err != nil {
		return err
	}
	r.shadowSettings = off
	return nil
}
