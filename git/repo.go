package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/orchestrator"
)

// Repo is the working tree of a repository. Its methods are safe for concurrent use: all Repos of a working tree share
// a lock.
//
// For snapshots, ductor uses a second Git directory, called the shadow directory. The shadow directory has its own
// index, and attributes that disable all conversions of file contents. A restored file is therefore identical to the
// original, byte by byte. The objects of snapshots are stored in the repository.
//
// Whoever can write to the shadow directory can make Git run a program. So on this host, the shadow directory lies where
// agents cannot write. In a sandbox, Git has no more rights than the agents, and the shadow directory lies inside the
// repository's Git directory.
type Repo struct {
	Top string // top directory of the working tree

	git       *Git
	launcher  cli.Launcher
	in        cli.Sandbox
	gitDir    string
	shadow    shadow
	common    string // Git directory with the branches; differs from gitDir in a worktree
	objects   string
	directory DirectoryFunc // from OpenWithin; nil after Open
	mu        *sync.Mutex   // shared by all Repos of this working tree
	excluded  []string      // paths that snapshots leave out; each snapshot can add more paths
}

// shadow describes the shadow directory of a Repo; see Repo.
type shadow struct {
	dir      string
	format   string   // format of the repository's object IDs, such as sha1
	settings []string // settings for commands in dir; nil before prepareShadow
}

// Open opens the repository that contains a directory. It returns orchestrator.ErrNoRepository if there is none.
func (g *Git) Open(ctx context.Context, at Place) (*Repo, error) {
	launcher, err := g.envs.Launcher(at.In)
	if err != nil {
		return nil, err
	}
	out, err := execute(ctx, launcher, command{
		args: []string{"rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-path",
			"objects", "--git-common-dir", "--show-object-format"},
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
	if len(lines) != 5 { // a path contains a line break
		return nil, fmt.Errorf("%w: its path has a line break", orchestrator.ErrNoRepository)
	}
	own := shadow{dir: path.Join(lines[1], "ductor"), format: lines[4]}
	if at.In == "" {
		if own.dir, err = g.privateShadow(lines[1], own.format); err != nil {
			return nil, err
		}
	}
	return &Repo{Top: lines[0], git: g, launcher: launcher, in: at.In, gitDir: lines[1], shadow: own,
		objects: lines[2], common: lines[3], mu: g.lockOf(lines[1])}, nil
}

// privateShadow returns the shadow directory on this host for a Git directory. Its name is a hash of the Git
// directory's path and of the format of object IDs. The hash omits the format sha1, so that ductor finds the shadow
// directories of earlier versions, which supported only sha1.
func (g *Git) privateShadow(gitDir, format string) (string, error) {
	if err := os.MkdirAll(g.private, 0o700); err != nil {
		return "", fmt.Errorf("create the directory of snapshots: %w", err)
	}
	if format != "sha1" {
		gitDir += "\x00" + format
	}
	sum := sha256.Sum256([]byte(gitDir))
	return filepath.Join(g.private, hex.EncodeToString(sum[:16])), nil
}

// unusedAfter is the time after which an unused shadow directory on this host is deleted. If it is needed again later,
// the next snapshot takes longer, because it reads all files.
const unusedAfter = 30 * 24 * time.Hour

// removeUnused deletes shadow directories on this host that were not used for a long time. Each snapshot changes the
// time of its directory, because Git creates a lock file there.
func (g *Git) removeUnused() {
	entries, _ := os.ReadDir(g.private)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > unusedAfter {
			_ = os.RemoveAll(filepath.Join(g.private, e.Name()))
		}
	}
}

// ownGitDir reports whether the Git directory is .git in the working tree, or names this working tree in its file gitdir
// or in core.worktree.
func (r *Repo) ownGitDir(ctx context.Context) bool {
	if r.gitDir != r.common { // a worktree
		file, err := rooted.Read(r.gitDir, "gitdir", maxPath)
		return err == nil && strings.TrimSpace(string(file)) == filepath.Join(r.Top, ".git") &&
			filepath.Dir(r.gitDir) == filepath.Join(r.common, "worktrees")
	}
	if r.gitDir == filepath.Join(r.Top, ".git") {
		return true
	}
	top, err := r.runOwn(ctx, "", "config", "--file", filepath.Join(r.gitDir, "config"), "core.worktree")
	if err != nil {
		return false
	}
	if top = strings.TrimSpace(top); !filepath.IsAbs(top) {
		top = filepath.Join(r.gitDir, top)
	}
	return filepath.Clean(top) == r.Top
}

const maxPath = 4096

// lockOf returns the lock of a Git directory. All environments share this lock, because they share the files.
func (g *Git) lockOf(gitDir string) *sync.Mutex {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.locks[gitDir] == nil {
		g.locks[gitDir] = &sync.Mutex{}
	}
	return g.locks[gitDir]
}

// runOwn runs Git in the repository itself, not in the shadow directory. It is for commands that only read, and for
// those that write only objects.
func (r *Repo) runOwn(ctx context.Context, input string, args ...string) (string, error) {
	return r.runOwnWith(ctx, safeSettings(""), input, args...)
}

// writeOwn is like runOwn, but for commands that write refs or the index.
func (r *Repo) writeOwn(ctx context.Context, input string, args ...string) (string, error) {
	names, err := listSettingNames(ctx, r.launcher, r.Top)
	if err == nil {
		err = r.checkLinks(writtenNames)
	}
	if err != nil {
		return "", err
	}
	return r.runOwnWith(ctx, append(safeSettings(names), logIdentity()...), input, args...)
}

func (r *Repo) runOwnWith(ctx context.Context, settings []string, input string, args ...string) (string, error) {
	return execute(ctx, r.launcher,
		command{args: hardenArgs(args), dir: r.Top, env: gitEnv(settings), input: input, timeout: r.timeout(),
			limit: maxOutput})
}

func (r *Repo) timeout() time.Duration { return 2 * time.Minute }

// runShadow runs Git in the shadow directory. It uses the shadow directory's index file with the given name, or the
// default index file if the name is empty.
func (r *Repo) runShadow(ctx context.Context, index, input string, args ...string) (string, error) {
	if err := r.prepareShadow(ctx); err != nil {
		return "", err
	}
	return r.runShadowWith(ctx, r.shadow.settings, index, input, args...)
}

func (r *Repo) runShadowWith(ctx context.Context, off []string, index, input string, args ...string) (string, error) {
	env := append(gitEnv(off), "GIT_DIR="+r.shadow.dir, "GIT_WORK_TREE="+r.Top, "GIT_OBJECT_DIRECTORY="+r.objects,
		"GIT_LITERAL_PATHSPECS=1")
	if index != "" {
		env = append(env, "GIT_INDEX_FILE="+path.Join(r.shadow.dir, index))
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

// prepareShadow creates the shadow directory if it does not exist.
//
// In a sandbox, an agent can write to the shadow directory, or may even have created it. So runShadow also disables all
// programs in the settings of the shadow directory. Each snapshot lists these settings again, because an agent may
// change them at any time.
func (r *Repo) prepareShadow(ctx context.Context) error {
	if r.shadow.settings != nil {
		return nil
	}
	if r.in == "" && !r.shadow.complete() {
		if err := r.writeShadow(ctx); err != nil {
			return fmt.Errorf("create a directory for snapshots: %w", err)
		}
	}
	names, err := r.runShadowWith(ctx, exactSettings(""), "", "", "config", "--null", "--list", "--name-only")
	if err == nil && r.in != "" {
		_, err = r.runShadowWith(ctx, exactSettings(names), "", "", "rev-parse", "--verify", "-q",
			"refs/ductor/ready^{blob}")
	}
	if err == nil {
		r.shadow.settings = exactSettings(names)
		return nil
	}
	if r.in == "" {
		return err
	}
	return r.createShadow(ctx, names)
}

// complete reports whether writeShadow has completed the shadow directory on this host.
func (s shadow) complete() bool {
	head, headErr := os.ReadFile(filepath.Join(s.dir, "HEAD"))
	written, attributesErr := os.ReadFile(filepath.Join(s.dir, "info", "attributes"))
	_, excludeErr := os.Readlink(filepath.Join(s.dir, "info", "exclude"))
	return errors.Join(headErr, attributesErr, excludeErr) == nil && len(head) > 0 && string(written) == attributes
}

// writeShadow creates the shadow directory on this host.
func (r *Repo) writeShadow(ctx context.Context) error {
	exclude, err := r.runOwn(ctx, "", "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
	if err != nil {
		return err
	}
	exclude = strings.TrimSuffix(exclude, "\n")
	r.git.removeUnused()
	if err := os.RemoveAll(r.shadow.dir); err != nil {
		return err
	}
	if err := writeGitDir(r.shadow.dir, r.shadow.format); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.shadow.dir, "info", "attributes"), []byte(attributes), 0o600); err != nil {
		return err
	}
	// Create this link last, because the method complete takes the link as the sign that all other files exist.
	return os.Symlink(exclude, filepath.Join(r.shadow.dir, "info", "exclude"))
}

// createShadow creates the shadow directory in a sandbox. names lists the settings that apply to an existing shadow
// directory; it is empty if there is none.
func (r *Repo) createShadow(ctx context.Context, names string) error {
	_, err := execute(ctx, r.launcher, command{
		args: []string{"init", "-q", "--bare", "--template=", r.shadow.dir}, dir: r.Top,
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
	if _, err := r.runShadowWith(ctx, off, "start", "", "--work-tree="+r.shadow.dir, "checkout-index", "-a", "-f", "-q"); err != nil {
		return err
	}
	if _, err := r.runShadowWith(ctx, off, "", "", "update-ref", "refs/ductor/ready", strings.TrimSpace(blob)); err != nil {
		return err
	}
	r.shadow.settings = off
	return nil
}
