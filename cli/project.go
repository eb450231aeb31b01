package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// ProjectSettings determines whether an agent may use the settings in its working directory, such as hooks, MCP servers
// and permissions.
type ProjectSettings string

// ProjectSettings values. An agent uses a project's settings only with WithProject.
const (
	WithoutProject ProjectSettings = ""        // the agent must ignore the project's settings, or not start
	EmptyProject   ProjectSettings = "none"    // ductor found no settings, and the agent uses none
	WithProject    ProjectSettings = "allowed" // a user saw and allowed exactly these settings
)

// ProjectTool is the Tool of an ApprovalAsked about the settings of a project.
const ProjectTool = "project settings"

// ChangedSettings is the name of a label in an ApprovalAsked about the settings of a project. The label's value lists
// the settings that have changed since users last allowed the settings. Package bot shows the label in the user's
// language.
const ChangedSettings = "changed settings"

// ProjectReader is a Provider whose agent reads settings from its working directory. Such settings can name programs to
// run. Request.Project determines whether the agent may use them.
type ProjectReader interface {
	// ProjectFiles lists the files that the agent reads as settings, relative to the directory that contains them. A
	// name that ends in a slash means a directory with everything below it. The list changes only when a process of the
	// agent starts.
	//
	// The extension of a file determines what ductor shows to users:
	//   - JSON: every value
	//   - Markdown: the front matter, and the commands within the text
	//   - .env: the names of all variables, and the values of those that are known to affect an agent or its runtime
	//   - TOML: the text
	ProjectFiles() []string
}

// Limits of ReadProject. Users cannot allow settings that exceed a limit.
const (
	projectFileBytes  = 128 << 10 // maximum size of a file
	projectFileCount  = 500       // maximum number of files
	projectShownBytes = 1 << 20   // maximum size of all fields together
)

// ReadProject reads the settings in a project's files and returns them as fields for users. Any change of a setting
// changes the fields. Like agents, ReadProject searches dir and all directories above it, except the home directory.
// For a Git worktree, ReadProject also searches the main checkout. ReadProject does not follow links out of a
// directory. home must have its links resolved.
//
// unread names a file, or other settings, that ReadProject could not read completely or must not show. If fields and
// unread are both empty, the project has no settings.
func ReadProject(dir, home string, files []string) (fields []Field, unread string) {
	r := projectReading{dir: RealPath(dir)}
	if r.dir == home { // settings there belong to the user, and agents use them in every project
		return nil, ""
	}
	seen := map[string]bool{home: true}
	r.search(r.dir, files, seen)
	tree, gitDir, err := worktreeOf(r.dir)
	if err == nil && gitDir == "" {
		return r.fields, r.missing
	}
	main, own := "", false
	if err == nil {
		main, own, err = mainCheckout(tree, gitDir)
	}
	// ductor cannot tell where .git leads, but Git or an agent may follow it to another directory with settings.
	if err != nil {
		r.lack(r.shown(tree, ".git"))
		return r.fields, r.missing
	}
	if own {
		r.search(main, files, seen)
		return r.fields, r.missing
	}
	// The file .git may have come with the project, and may name any repository of the user. An agent may read the
	// settings of that repository, so users must not allow the project's settings. The settings are not shown, because
	// they may not be meant for the chat.
	other := projectReading{dir: r.dir}
	other.search(main, files, seen)
	if len(other.fields) > 0 || other.missing != "" {
		r.lack("the settings to which " + r.shown(tree, ".git") + " leads")
	}
	return r.fields, r.missing
}

// search reads the files in a directory and in all directories above it, except those in seen. It adds them to seen.
func (r *projectReading) search(start string, files []string, seen map[string]bool) {
	for at := start; ; at = filepath.Dir(at) {
		if !seen[at] {
			seen[at] = true
			r.read(at, files)
		}
		if at == filepath.Dir(at) {
			return
		}
	}
}

// worktreeOf searches dir and its parents for a worktree or a submodule. Such a directory contains a file .git that
// names the Git directory, or a Git directory .git whose file commondir names another repository. worktreeOf returns
// the directory as tree, and its Git directory. It returns empty strings if it finds nothing. If it cannot read the
// file .git, it returns only tree and an error.
func worktreeOf(dir string) (tree, gitDir string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		gitDir, err := readGitPath(at, ".git", "gitdir: ")
		if gitDir != "" || err != nil {
			return at, gitDir, err
		}
		gitDir = filepath.Join(at, ".git")
		if _, err := os.Lstat(filepath.Join(gitDir, "commondir")); err == nil {
			return at, gitDir, nil
		}
		if at == filepath.Dir(at) {
			return "", "", nil
		}
	}
}

// mainCheckout returns the main checkout of the repository to which a worktree or a submodule belongs, because agents
// also read settings there. own reports whether the repository refers to tree: in the file gitdir of a worktree, or in
// core.worktree of a submodule. mainCheckout returns an error if it cannot read the files of the repository.
func mainCheckout(tree, gitDir string) (dir string, own bool, err error) {
	common, err := readGitPath(gitDir, "commondir", "")
	if err != nil {
		return "", false, err
	}
	if common == "" {
		named, err := coreWorktree(gitDir)
		return RealPath(strings.TrimSuffix(gitDir, "/.git")), named != "" && RealPath(named) == tree, err
	}
	named, err := readGitPath(gitDir, "gitdir", "")
	own = named != "" && RealPath(named) == filepath.Join(tree, ".git") &&
		filepath.Dir(RealPath(gitDir)) == filepath.Join(RealPath(common), "worktrees")
	return RealPath(strings.TrimSuffix(common, "/.git")), own, err
}

// coreWorktree returns the directory that the setting core.worktree of a Git directory names, or "".
func coreWorktree(gitDir string) (dir string, err error) {
	value := ""
	for _, name := range []string{"config", "config.worktree"} {
		text, err := readGitFile(filepath.Join(gitDir, name))
		if err != nil {
			return "", err
		}
		section := ""
		for line := range strings.Lines(text) {
			key, text, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch {
			case strings.HasPrefix(key, "["):
				section = key
			case section == "[core]" && strings.EqualFold(strings.TrimSpace(key), "worktree"):
				value = strings.Trim(strings.TrimSpace(text), `"`)
			}
		}
	}
	if value == "" {
		return "", nil
	}
	return gitPath(gitDir, value)
}

var errUnclearPath = errors.New("programs may read this path in different ways")

// readGitPath reads a file in which Git stores label followed by a path. It returns the path, or "" if the file is
// missing or does not contain the label.
//
// Git removes only the line breaks at the end of the file. Agents may also remove other white space, and may accept a
// label without a space after it. readGitPath returns an error if agents could read another path than Git.
func readGitPath(dir, name, label string) (string, error) {
	text, err := readGitFile(filepath.Join(dir, name))
	if err != nil || text == "" || !strings.Contains(text, strings.TrimSpace(label)) {
		return "", err
	}
	to, found := strings.CutPrefix(strings.TrimRight(text, "\r\n"), label)
	if !found || to == "" {
		return "", errUnclearPath
	}
	return gitPath(dir, to)
}

// gitPath returns the absolute path for a path in a file of Git. A relative path starts at dir. gitPath returns an
// error if the path begins or ends with white space, contains control characters or invalid UTF-8, or contains a link
// followed by "..".
func gitPath(dir, to string) (string, error) {
	if strings.TrimSpace(strings.Trim(to, "\ufeff")) != to || !utf8.ValidString(to) ||
		strings.ContainsFunc(to, unicode.IsControl) {
		return "", errUnclearPath
	}
	if !filepath.IsAbs(to) {
		to = dir + "/" + to
	}
	// The system resolves a link before the ".." that follows it. Clean removes both.
	if real, err := filepath.EvalSymlinks(to); err == nil && real != RealPath(to) {
		return "", errUnclearPath
	}
	return filepath.Clean(to), nil
}

// gitFileBytes is the maximum size of the files of Git that ductor reads to find settings.
const gitFileBytes = 64 << 10

// readGitFile returns the content of a small file of Git. It returns "" if the file is missing or a directory.
func readGitFile(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && info.IsDir():
		return "", nil
	case err != nil:
		return "", err
	case !info.Mode().IsRegular(): // opening a pipe would block
		return "", fmt.Errorf("%s is no file", path)
	case info.Size() > gitFileBytes:
		return "", errLongFile
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

type projectReading struct {
	dir     string
	fields  []Field
	missing string
	count   int // number of files that were read
	bytes   int // size of all fields
}

func (r *projectReading) lack(what string) { r.missing = cmp.Or(r.missing, what) }

func (r *projectReading) read(at string, files []string) {
	files = present(at, files)
	if len(files) == 0 {
		return
	}
	root, err := os.OpenRoot(at)
	// If ductor cannot open the directory, an agent may still be able to open a file by its name. So report each
	// existing file as unread.
	if err != nil {
		for _, name := range files {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				r.lack(r.shown(at, name))
			}
		}
		return
	}
	defer root.Close()
	for _, name := range files {
		if name, all := strings.CutSuffix(name, "/"); all {
			r.below(root, name)
		} else {
			r.file(root, name)
		}
	}
}

// present returns the files whose first path element exists in dir. This check is cheap, and most directories contain
// none of the files.
func present(dir string, files []string) (there []string) {
	missing := map[string]bool{} // for each first path element, whether dir lacks it
	for _, name := range files {
		first, _, _ := strings.Cut(name, "/")
		if _, known := missing[first]; !known {
			_, err := os.Lstat(filepath.Join(dir, first))
			missing[first] = errors.Is(err, fs.ErrNotExist)
		}
		if !missing[first] {
			there = append(there, name)
		}
	}
	return there
}

// shown returns a file's path as users see it: relative to the working directory.
func (r *projectReading) shown(at, name string) string {
	rel, err := filepath.Rel(r.dir, filepath.Join(at, filepath.FromSlash(name)))
	if err != nil {
		return path.Join(at, name)
	}
	return rel
}

// below reads all files below a directory. It does not enter linked directories.
func (r *projectReading) below(root *os.Root, dir string) {
	if _, err := root.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		r.file(root, dir) // does nothing if dir is missing, and reports a broken link
		return
	}
	// WalkDir itself returns no error, because the callback handles all errors.
	_ = fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			r.lack(r.shown(root.Name(), name))
		case r.count > projectFileCount:
			return fs.SkipAll
		case !d.IsDir():
			r.file(root, name)
		}
		return nil
	})
}

func (r *projectReading) file(root *os.Root, name string) {
	shown := r.shown(root.Name(), name)
	text, err := readProjectFile(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := root.Lstat(name); err == nil { // name is a broken link
			r.lack(shown)
		}
		return
	case err != nil:
		r.lack(shown)
		r.fields = append(r.fields, Field{Name: shown, Value: "it cannot be read"})
		return
	}
	if r.count++; r.count > projectFileCount {
		r.lack(fmt.Sprintf("the settings: there are more than %d files", projectFileCount))
		return
	}
	if server := serverLikeOwn(text, path.Ext(name)); server != "" {
		r.lack(shown)
		r.fields = append(r.fields, Field{Name: shown, Value: "rename the MCP server " + server +
			": an agent could confuse its tools with ductor's own"})
	}
	for _, l := range projectLeaves(text, path.Ext(name)) {
		if r.bytes += len(l.Name) + len(l.Value); r.bytes > projectShownBytes {
			r.lack("the settings: they are too long")
			return
		}
		r.fields = append(r.fields, Field{Name: strings.TrimSuffix(shown+": "+l.Name, ": "), Value: l.Value})
	}
	if marks := envMarks(text); path.Ext(name) == ".env" && marks != "" {
		r.fields = append(r.fields, Field{Name: shown + envMarksSuffix, Value: marks, Weight: LabelField})
	}
}

var errLongFile = errors.New("the file is too long")

func readProjectFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return nil, fmt.Errorf("%s is no file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, projectFileBytes+1))
	if err == nil && len(text) > projectFileBytes {
		err = errLongFile
	}
	return text, err
}
