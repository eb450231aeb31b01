// Package projects lets users manage projects. It lists the configured projects and the repositories below the roots.
// It lets a conversation work in the directory of a project, or in a git worktree of one of its branches. It also
// removes worktrees.
//
// Git runs in the environment of the project. The package runs no turns and sends no messages.
package projects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"ductor/cli"
	"ductor/git"
	"ductor/orchestrator"
)

// Engine runs the turns of conversations. *conversation.Engine implements it.
type Engine interface {
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)
	// SetDir sets the working directory of a conversation.
	SetDir(ctx context.Context, id orchestrator.ConversationID, path string, by orchestrator.PersonID) (string, error)
	// Directory returns a directory without symbolic links in its path. It returns an error if conversations must not
	// work there.
	Directory(path string) (string, error)
}

// Options configures a Book.
type Options struct {
	Named     func() map[string]string // directories of the configured projects, by name
	Roots     []string                 // directories to search for repositories
	Sandboxes orchestrator.Sandboxes
}

// Book implements orchestrator.Projects. It is safe for concurrent use once Attach has returned.
type Book struct {
	opts   Options
	engine Engine
	git    *git.Git
}

var _ orchestrator.Projects = (*Book)(nil)

// New creates a Book. The caller must call its method Attach before using it.
func New(o Options) *Book { return &Book{opts: o} }

// Attach sets the components that are constructed after the Book.
func (b *Book) Attach(engine Engine, git *git.Git) { b.engine, b.git = engine, git }

// Projects implements orchestrator.Projects. Projects that would have the same name are named by their paths.
func (b *Book) Projects(ctx context.Context) ([]orchestrator.Project, error) {
	byName, dirs := map[string]string{}, map[string]bool{}
	add := func(name, dir string) {
		dir, err := b.engine.Directory(dir)
		if err != nil || dirs[dir] {
			return
		}
		if byName[name] != "" {
			name = dir
		}
		byName[name], dirs[dir] = dir, true
	}
	named := b.opts.Named()
	for _, name := range slices.Sorted(maps.Keys(named)) {
		add(name, named[name])
	}
	for _, root := range b.opts.Roots {
		for _, dir := range repositories(ctx, root) {
			add(filepath.Base(dir), dir)
		}
	}
	var all []orchestrator.Project
	for name, dir := range byName {
		all = append(all, orchestrator.Project{Name: name, Dir: dir})
	}
	slices.SortFunc(all, func(a, b orchestrator.Project) int { return strings.Compare(a.Name, b.Name) })
	return all, context.Cause(ctx)
}

// Limits of the search for repositories.
const (
	depthMost   = 3 // directory levels below a root
	entriesMost = 5000
	foundMost   = 200
)

// repositories finds Git repositories in a directory and below it. Repositories on higher levels come first. The search
// does not follow symbolic links, and does not enter hidden directories or repositories.
func repositories(ctx context.Context, dir string) (found []string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	left := entriesMost
	for level := []string{"."}; len(level) > 0 && ctx.Err() == nil; {
		var next []string
		for _, at := range level {
			if _, err := root.Lstat(filepath.Join(at, ".git")); err == nil {
				found = append(found, filepath.Join(dir, at))
				continue
			}
			if strings.Count(at, "/") >= depthMost-1 && at != "." || len(found) >= foundMost {
				continue
			}
			d, err := root.Open(at)
			if err != nil {
				continue
			}
			entries, _ := d.ReadDir(max(left, 1)) // an unreadable directory counts as empty
			_ = d.Close()                         // the directory was only read, so an error does not matter
			left -= len(entries)
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			for _, e := range entries {
				if left > 0 && e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "node_modules" {
					next = append(next, filepath.Join(at, e.Name()))
				}
			}
		}
		level = next
	}
	return found
}

// OpenProject implements orchestrator.Projects.
func (b *Book) OpenProject(ctx context.Context, by orchestrator.Press, name, branch string) (string, error) {
	all, err := b.Projects(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(all, func(p orchestrator.Project) bool { return p.Name == name })
	if i < 0 {
		return "", orchestrator.ErrNoProject
	}
	dir := all[i].Dir
	if branch != "" {
		if dir, err = b.checkout(ctx, by.Conversation, dir, branch); err != nil {
			return "", err
		}
	}
	return b.engine.SetDir(ctx, by.Conversation, dir, by.Person)
}

// treesDir is the directory for the worktrees of a repository. It is inside the repository, so that a worktree belongs
// to the same root and the same sandbox as the repository.
const treesDir = ".worktrees"

// checkout returns the worktree of a branch. It creates the worktree if necessary.
func (b *Book) checkout(ctx context.Context, in orchestrator.ConversationID, dir, branch string) (string, error) {
	at, all, err := b.worktrees(ctx, in, dir)
	if err != nil {
		return "", err
	}
	for _, w := range all {
		if w.Branch == branch && !w.Gone {
			return w.Dir, nil
		}
	}
	tree := filepath.Join(at.Dir, treesDir, folderOf(branch))
	if err := b.makeTreesDir(at.Dir); err != nil {
		return "", fmt.Errorf("make a place for worktrees: %w", err)
	}
	// If tree is a symbolic link, Git would write to its target.
	if info, err := os.Lstat(tree); err == nil && !info.IsDir() {
		return "", orchestrator.ErrOutsideRoot
	}
	return tree, b.git.AddWorktree(ctx, at, branch, tree)
}

// makeTreesDir creates treesDir in a repository and makes Git ignore it.
func (b *Book) makeTreesDir(main string) error {
	repo, err := os.OpenRoot(main)
	if err != nil {
		return err
	}
	defer repo.Close()
	if err := repo.Mkdir(treesDir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir := filepath.Join(main, treesDir)
	if real, err := b.engine.Directory(dir); err != nil || real != dir { // a symbolic link could lead out of the roots
		return orchestrator.ErrOutsideRoot
	}
	ignore, err := repo.OpenFile(treesDir+"/.gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = ignore.WriteString("*\n")
	return errors.Join(err, ignore.Close())
}

var unplain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9._-]+`) })

// folderOf returns a folder name for the worktree of a branch. Different branches get different names.
func folderOf(branch string) string {
	plain := strings.Trim(unplain().ReplaceAllString(branch, "-"), ".-")
	if plain == branch {
		return branch
	}
	sum := sha256.Sum256([]byte(branch))
	return plain + "-" + hex.EncodeToString(sum[:3])
}

func (b *Book) sandboxOf(in orchestrator.ConversationID, dir string) cli.Sandbox {
	if b.opts.Sandboxes == nil {
		return ""
	}
	return b.opts.Sandboxes.Of(dir, in)
}

// worktrees lists the worktrees of the repository that contains dir, and returns where Git must run for this
// repository. It omits worktrees in which conversations may not work. It also omits worktrees in another environment,
// because an agent in a sandbox can make Git list any directory of this host as a worktree.
func (b *Book) worktrees(ctx context.Context, in orchestrator.ConversationID, dir string) (git.Place,
	[]orchestrator.Worktree, error) {
	at := git.Place{In: b.sandboxOf(in, dir), Dir: dir}
	err := b.git.CheckGitDir(ctx, at, b.engine.Directory)
	if errors.Is(err, orchestrator.ErrOutsideRoot) {
		return at, nil, err
	}
	all, err := b.git.Worktrees(ctx, at)
	if err != nil {
		return at, nil, fmt.Errorf("%w: %w", orchestrator.ErrNoRepository, err)
	}
	main := all[0].Dir
	all = slices.DeleteFunc(all, func(w orchestrator.Worktree) bool {
		real, err := b.engine.Directory(w.Dir)
		return !w.Gone && (err != nil || real != w.Dir || b.sandboxOf(in, w.Dir) != at.In)
	})
	if len(all) == 0 || all[0].Dir != main {
		return at, nil, orchestrator.ErrOutsideRoot
	}
	at.Dir = main
	return at, all, nil
}

// Worktrees implements orchestrator.Projects.
func (b *Book) Worktrees(ctx context.Context, in orchestrator.ConversationID) ([]orchestrator.Worktree, error) {
	st, err := b.engine.Status(ctx, in)
	if err != nil {
		return nil, err
	}
	_, all, err := b.worktrees(ctx, in, st.Dir)
	return all, err
}

// OpenWorktree implements orchestrator.Projects.
func (b *Book) OpenWorktree(ctx context.Context, by orchestrator.Press, dir string) error {
	all, err := b.Worktrees(ctx, by.Conversation)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(w orchestrator.Worktree) bool { return w.Dir == dir && !w.Gone }) {
		return orchestrator.ErrNoProject
	}
	_, err = b.engine.SetDir(ctx, by.Conversation, dir, by.Person)
	return err
}

// RemoveWorktree implements orchestrator.Projects.
func (b *Book) RemoveWorktree(ctx context.Context, by orchestrator.Press, dir string,
	changes orchestrator.Changes) error {
	st, err := b.engine.Status(ctx, by.Conversation)
	if err != nil {
		return err
	}
	at, all, err := b.worktrees(ctx, by.Conversation, st.Dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(w orchestrator.Worktree) bool { return w.Dir == dir && !w.Main })
	if i < 0 {
		return orchestrator.ErrNoProject
	}
	here := all[i].Contains(st.Dir)
	if here && st.Running != nil {
		return orchestrator.ErrStillOpen
	}
	if err := b.git.RemoveWorktree(ctx, at, dir, changes); err != nil || !here {
		return err
	}
	_, err = b.engine.SetDir(ctx, by.Conversation, at.Dir, by.Person)
	return err
}
