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
)

// ProjectSettings determines whether an agent may use the settings that its project contains, such as hooks, MCP
// servers and rights.
type ProjectSettings string

// ProjectSettings values. An agent uses a project's settings only with WithProject.
const (
	WithoutProject ProjectSettings = ""        // the project has settings; the agent starts without them or not at all
	EmptyProject   ProjectSettings = "none"    // ductor found no settings; the agent starts without any
	WithProject    ProjectSettings = "allowed" // a user saw and allowed exactly these settings
)

// ProjectTool is the Tool of an ApprovalAsked for the settings of a project.
const ProjectTool = "project settings"

// ProjectReader is a Provider whose agent reads settings from its working directory. Such settings can name programs to
// run. The agent uses them only as Request.Project allows.
type ProjectReader interface {
	// ProjectFiles lists the files that the agent reads, relative to the directory that contains them. The list changes
	// only when a process of the agent starts. A name that ends in a slash means a directory with everything below it.
	//
	// The extension of a file determines which parts users see:
	//   - JSON: every value
	//   - Markdown: the front matter, and the commands within the text
	//   - .env: the lines that affect an agent or its runtime
	//   - TOML: the text
	ProjectFiles() []string
}

// Limits of ReadProject. Users cannot allow settings beyond a limit.
const (
	projectFileBytes  = 128 << 10 // of one file
	projectFileCount  = 500       // of all files
	projectShownBytes = 1 << 20   // of all fields
)

// ReadProject reads the settings in a project's files and returns them as fields for users. Any change of a file
// changes the fields. Like agents, ReadProject searches dir and all directories above it, except the home directory.
// For a worktree it also searches the main checkout. It follows no link out of a directory. home must have its links
// resolved.
//
// missing names a file that ReadProject could not read completely. If fields and missing are both empty, the project
// has no settings.
func ReadProject(dir, home string, files []string) (fields []Field, missing string) {
	r := projectReading{dir: RealPath(dir)}
	if r.dir == home { // files there are the user's own, and every agent reads them for every project
		return nil, ""
	}
	seen := map[string]bool{home: true}
	for _, start := range []string{r.dir, mainCheckout(r.dir)} {
		for at := start; ; at = filepath.Dir(at) {
			if !seen[at] {
				seen[at] = true
				r.read(at, files)
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return r.fields, r.missing
}

// mainCheckout returns the main checkout of the repository if dir is in a worktree, because agents also read settings
// there. Otherwise it returns dir.
func mainCheckout(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if to, is := strings.CutPrefix(shortFile(filepath.Join(at, ".git")), "gitdir:"); is {
			git := from(at, strings.TrimSpace(to))
			if common := shortFile(filepath.Join(git, "commondir")); common != "" {
				git = from(git, common)
			}
			return RealPath(strings.TrimSuffix(git, "/.git"))
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// from returns path, relative to dir unless it is absolute.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// shortFile returns the content of a small file. It returns "" if the file is large or cannot be read.
func shortFile(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

type projectReading struct {
	dir     string
	fields  []Field
	missing string
	count   int // number of files
	bytes   int // size of the fields
}

// lack records the name of a file that could not be read. It keeps only the first name.
func (r *projectReading) lack(what string) { r.missing = cmp.Or(r.missing, what) }

func (r *projectReading) read(at string, files []string) {
	files = present(at, files)
	if len(files) == 0 {
		return
	}
	root, err := os.OpenRoot(at)
	if err != nil { // an agent can open a file by its name without listing the directory
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

// present returns the files whose first path element exists in a directory. Most directories contain none, so their
// files need not be opened.
func present(at string, files []string) (there []string) {
	missing := map[string]bool{} // by first path element
	for _, name := range files {
		first, _, _ := strings.Cut(name, "/")
		if _, known := missing[first]; !known {
			_, err := os.Lstat(filepath.Join(at, first))
			missing[first] = errors.Is(err, fs.ErrNotExist)
		}
		if !missing[first] {
			there = append(there, name)
		}
	}
	return there
}

// shown returns a file's path relative to the working directory, as users see it.
func (r *projectReading) shown(at, name string) string {
	rel, err := filepath.Rel(r.dir, filepath.Join(at, filepath.FromSlash(name)))
	if err != nil {
		return path.Join(at, name)
	}
	return rel
}

// below reads all files below a directory. It does not follow links to other directories.
func (r *projectReading) below(root *os.Root, dir string) {
	if _, err := root.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		r.file(root, dir) // dir is missing, or a link to a missing file
		return
	}
	_ = fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error { // errors mean missing files
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
		if _, err := root.Lstat(name); err == nil { // a link to a missing file
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
	for _, l := range projectLeaves(text, path.Ext(name)) {
		if r.bytes += len(l.Name) + len(l.Value); r.bytes > projectShownBytes {
			r.lack("the settings: they are too long")
			return
		}
		r.fields = append(r.fields, Field{Name: strings.TrimSuffix(shown+": "+l.Name, ": "), Value: l.Value})
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
